/**
 * A disk that records every request: one file served over FUSE, which a loop device lies on. Runs as a process
 * of its own, because the process that mounts its file system waits in the kernel for it.
 *
 *   bun recording-disk.ts IMAGE LOG FOLDER      serves FOLDER/disk
 *
 * The log holds, one after the other, offset and length (8 bytes each, little endian) with the bytes written; a length of
 * nothing shows that everything before it had to be on the medium.
 */
import { closeSync, fstatSync, fsyncSync, openSync, readSync, writeSync } from 'node:fs'
import { constants } from 'node:os'
import { mount } from '../../src/linux/fs/mount.ts'

const [imagePath = '', logPath = '', folder = ''] = process.argv.slice(2)
const image = openSync(imagePath, 'r+')
const log = openSync(logPath, 'w')
const { size } = fstatSync(image)
const fuse = openSync('/dev/fuse', 'r+')
mount({ source: 'disk', target: folder, type: 'fuse', flags: ['nosuid', 'nodev'], data: `fd=${fuse},rootmode=40000,user_id=0,group_id=0` })
console.log('ready')

/** Operations and limits of linux/fuse.h, version 7. */
const operation = {
  lookup: 1,
  forget: 2,
  getattr: 3,
  setattr: 4,
  open: 14,
  read: 15,
  write: 16,
  statfs: 17,
  release: 18,
  fsync: 20,
  flush: 25,
  init: 26,
  opendir: 27,
  releasedir: 29,
  destroy: 38,
  batchForget: 42,
}
const { ENOENT, ENOSYS } = constants.errno
const rootNode = 1
const diskNode = 2
const mostWritten = 128 << 10

const request = Buffer.alloc(mostWritten + 4096)

function attributes(node: number): Buffer {
  const bytes = Buffer.alloc(88)
  bytes.writeBigUInt64LE(BigInt(node), 0)
  bytes.writeBigUInt64LE(BigInt(node === diskNode ? size : 0), 8)
  bytes.writeUInt32LE(node === diskNode ? 0o100600 : 0o40700, 60)
  bytes.writeUInt32LE(1, 64)
  bytes.writeUInt32LE(4096, 80)
  return bytes
}

function record(offset: number, bytes: Uint8Array): void {
  const head = Buffer.alloc(16)
  head.writeBigUInt64LE(BigInt(offset), 0)
  head.writeBigUInt64LE(BigInt(bytes.length), 8)
  writeSync(log, head)
  if (bytes.length > 0) writeSync(log, bytes)
}

/** The answer to a request; a number is an error, undefined means that none is wanted. */
function answer(code: number, node: number, body: Buffer): Buffer | number | undefined {
  switch (code) {
    case operation.init: {
      const reply = Buffer.alloc(64)
      reply.writeUInt32LE(7, 0)
      reply.writeUInt32LE(31, 4)
      reply.writeUInt32LE(body.readUInt32LE(8), 8)
      reply.writeUInt32LE(1 << 5, 12) // writes of more than a page
      reply.writeUInt16LE(16, 16)
      reply.writeUInt16LE(12, 18)
      reply.writeUInt32LE(mostWritten, 20)
      reply.writeUInt32LE(1, 24)
      return reply
    }
    case operation.lookup: {
      if (node !== rootNode || body.toString('latin1', 0, body.indexOf(0)) !== 'disk') return ENOENT
      const reply = Buffer.alloc(40)
      reply.writeBigUInt64LE(BigInt(diskNode), 0)
      return Buffer.concat([reply, attributes(diskNode)])
    }
    case operation.getattr:
    case operation.setattr:
      return Buffer.concat([Buffer.alloc(16), attributes(node)])
    case operation.open:
    case operation.opendir:
      return Buffer.alloc(16)
    case operation.read: {
      const bytes = Buffer.alloc(body.readUInt32LE(16))
      return bytes.subarray(0, readSync(image, bytes, 0, bytes.length, Number(body.readBigUInt64LE(8))))
    }
    case operation.write: {
      const offset = Number(body.readBigUInt64LE(8))
      const bytes = body.subarray(40, 40 + body.readUInt32LE(16))
      writeSync(image, bytes, 0, bytes.length, offset)
      record(offset, bytes)
      const reply = Buffer.alloc(8)
      reply.writeUInt32LE(bytes.length, 0)
      return reply
    }
    case operation.fsync:
      record(0, new Uint8Array())
      return Buffer.alloc(0)
    case operation.statfs: {
      const reply = Buffer.alloc(80)
      reply.writeUInt32LE(4096, 40)
      return reply
    }
    case operation.flush:
    case operation.release:
    case operation.releasedir:
      return Buffer.alloc(0)
    case operation.forget:
    case operation.batchForget:
      return undefined
    default:
      return ENOSYS
  }
}

for (;;) {
  let length: number
  try {
    length = readSync(fuse, request, 0, request.length, null)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') continue // the request was taken back
    break // ENODEV: unmounted
  }
  const code = request.readUInt32LE(4)
  const reply = answer(code, Number(request.readBigUInt64LE(16)), request.subarray(40, length))
  if (reply === undefined) continue
  const data = typeof reply === 'number' ? Buffer.alloc(0) : reply
  const head = Buffer.alloc(16)
  head.writeUInt32LE(16 + data.length, 0)
  head.writeInt32LE(typeof reply === 'number' ? -reply : 0, 4)
  request.copy(head, 8, 8, 16)
  writeSync(fuse, Buffer.concat([head, data]))
  if (code === operation.destroy) break
}
fsyncSync(log)
closeSync(log)
