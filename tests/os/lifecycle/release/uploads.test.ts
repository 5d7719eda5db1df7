import { expect, test } from 'bun:test'
import { Writable } from 'node:stream'
import { findUpload, Uploads } from '../../../../src/os/lifecycle/release/uploads.ts'

const sha256 = (text: string) => new Bun.CryptoHasher('sha256').update(text).digest('hex')
const folder = '/run/ichor/uploads'
const memory = { onDisk: false }

/** Files that are kept in a map, by their paths. */
function kernels() {
  const kept = new Map<string, string>()
  const free = { bytes: 2 ** 30 }
  const files = {
    mkdirAll: () => {},
    list: (path: string) => [...kept.keys()].filter((each) => each.startsWith(`${path}/`)).map((each) => each.slice(path.length + 1)),
    removeFile: (path: string) => void kept.delete(path),
    readText: () => 'MemTotal: 4096 kB\n',
    exists: (path: string) => [...kept.keys()].some((each) => each === path || each.startsWith(`${path}/`)),
    statfs: () => ({ available: free.bytes }),
    lstatIfThere: (path: string) => (kept.has(path) ? { size: kept.get(path)!.length } : undefined),
    move: (from: string, to: string) => {
      kept.set(to, kept.get(from)!)
      kept.delete(from)
    },
    openWrite: (path: string) => {
      kept.set(path, '')
      return new Writable({
        write(chunk, _, done) {
          kept.set(path, kept.get(path) + chunk)
          done()
        },
      })
    },
  }
  const parts = { files } as unknown as ConstructorParameters<typeof Uploads>[0]
  return { kept, free, parts, uploads: new Uploads(parts) }
}

/** An archive in chunks, and the number of chunks read. */
function sending(text: string, promised = sha256(text)) {
  const requested = { pieces: 0 }
  const pieces = async function* () {
    yield { data: new Uint8Array(), sha256: promised }
    for (const letter of text) {
      requested.pieces++
      yield { data: Buffer.from(letter), sha256: '' }
    }
  }
  return { requested, pieces: pieces() }
}

test('an archive is stored by its hash and replaces the previous one', async () => {
  const { kept, parts, uploads } = kernels()
  for (const text of ['one release', 'another']) {
    const name = await uploads.take(sending(text).pieces, memory)
    expect(name).toBe(`upload:${sha256(text)}`)
    expect([...kept]).toEqual([[`${folder}/${sha256(text)}.tar`, text]])
    expect(findUpload(parts, name)).toEqual({ path: `${folder}/${sha256(text)}.tar`, size: text.length })
  }
})

test('with a disk that pods have filled an archive goes to memory, and the previous one leaves the disk', async () => {
  const { kept, free, parts, uploads } = kernels()
  await uploads.take(sending('one release').pieces, { onDisk: true })
  expect([...kept.keys()]).toEqual([`/var/system/uploads/${sha256('one release')}.tar`])
  free.bytes = 2 ** 20
  const name = await uploads.take(sending('another').pieces, { onDisk: true })
  expect([...kept.keys()]).toEqual([`${folder}/${sha256('another')}.tar`])
  expect(findUpload(parts, name).size).toBe(7)
})

test('an existing archive is not received again', async () => {
  const { kept, uploads } = kernels()
  const name = await uploads.take(sending('one release').pieces, memory)
  const again = sending('one release')
  expect(await uploads.take(again.pieces, memory)).toBe(name)
  expect(again.requested.pieces).toBe(0)
  expect(kept.size).toBe(1)
})

test('an archive without a declared hash is accepted', async () => {
  expect(await kernels().uploads.take(sending('one release', '').pieces, memory)).toBe(`upload:${sha256('one release')}`)
})

test('an archive with a wrong hash is discarded', async () => {
  const { kept, uploads } = kernels()
  await expect(uploads.take(sending('half of it', sha256('all of it')).pieces, memory)).rejects.toThrow('modified or truncated')
  await expect(uploads.take(sending('text', '../../etc/passwd').pieces, memory)).rejects.toThrow('64 digits')
  expect(kept.size).toBe(0)
})

test('uploads are exclusive, so that no temporary file is removed while it is written', async () => {
  const { kept, uploads } = kernels()
  const { promise: gate, resolve: open } = Promise.withResolvers<void>()
  const slow = (async function* () {
    yield { data: Buffer.from('slow'), sha256: '' }
    await gate
  })()
  const first = uploads.take(slow, memory)
  await expect(uploads.take(sending('other').pieces, memory)).rejects.toThrow('another upload to this node is in progress')
  open()
  expect(await first).toBe(`upload:${sha256('slow')}`)
  expect(kept.size).toBe(1)
})

test('in memory an upload takes a quarter at most, and leaves nothing on failure', async () => {
  const { kept, uploads } = kernels()
  const large = (async function* () {
    for (let index = 0; index < 5; index++) yield { data: Buffer.alloc(256 << 10), sha256: '' }
  })()
  await expect(uploads.take(large, memory)).rejects.toThrow('larger than 1 MiB, the space available on this node')
  expect(kept.size).toBe(0)
})

test('a silent sender does not block others', async () => {
  const { kept, uploads } = kernels()
  const silent = {
    [Symbol.asyncIterator]: () => ({ next: () => new Promise<never>(() => {}), return: async () => ({ done: true, value: undefined }) }),
  }
  await expect(uploads.take(silent as never, { onDisk: false, idle: 5 })).rejects.toThrow('no data received')
  expect(await uploads.take(sending('next').pieces, memory)).toBe(`upload:${sha256('next')}`)
  expect(kept.size).toBe(1)
})

test('an endlessly slow sender does not block others', async () => {
  const { kept, uploads } = kernels()
  const dribble = (async function* () {
    for (;;) {
      yield { data: new Uint8Array(0), sha256: '' }
      await Bun.sleep(1)
    }
  })()
  await expect(uploads.take(dribble, { onDisk: false, longest: 20 })).rejects.toThrow(/not complete within 0.02 s|no data received/)
  expect(await uploads.take(sending('next').pieces, memory)).toBe(`upload:${sha256('next')}`)
  expect(kept.size).toBe(1)
})
