import { afterEach, beforeEach, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeClock } from '../../../../src/cosi/clock.ts'
import * as files from '../../../../src/linux/fs/files.ts'
import { S3Client } from '../../../../src/os/etcd/backup/s3-client.ts'
import { partLength, S3Target } from '../../../../src/os/etcd/backup/s3-target.ts'
import type { TakenBackup } from '../../../../src/os/etcd/backup/target.ts'
import { backupName } from '../../../../src/os/etcd/resources/backup-name.ts'

const { signal } = new AbortController()
const cluster = '0a0b0c0d'
let home = ''
let peer: ReturnType<typeof bucket>
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 's3-'))
  peer = bucket()
})
afterEach(async () => {
  await peer.server.stop(true)
  rmSync(home, { recursive: true, force: true })
})

/** A server that keeps objects in memory; the next answers can be given. */
function bucket() {
  const objects = new Map<string, Uint8Array>()
  const uploads = new Map<string, Uint8Array[]>()
  const requests: string[] = []
  const answers: ((request: string) => Response | undefined)[] = []
  const xml = (text: string) => new Response(text, { headers: { 'content-type': 'application/xml' } })
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const { pathname, searchParams } = new URL(request.url)
      const key = pathname.slice('/backups/'.length)
      const what = `${request.method} ${searchParams.has('uploads') ? 'begin' : searchParams.get('partNumber') ? 'part' : searchParams.has('uploadId') ? 'upload' : searchParams.has('list-type') ? 'list' : 'object'}`
      requests.push(what)
      const given = answers[0]?.(what)
      if (given) {
        answers.shift()
        return given
      }
      const body = new Uint8Array(await request.arrayBuffer())
      const object = objects.get(key)
      switch (what) {
        case 'GET list':
          return xml(
            [...objects]
              .map(([name, { length }]) => `<Contents><Key>${encodeURIComponent(name)}</Key><Size>${length}</Size></Contents>`)
              .join(''),
          )
        case 'POST begin':
          uploads.set('u1', [])
          return xml('<UploadId>u1</UploadId>')
        case 'PUT part':
          uploads.get('u1')?.push(body)
          return new Response('', { headers: { etag: '"tag"' } })
        case 'POST upload':
          objects.set(key, Buffer.concat(uploads.get('u1') ?? []))
          return xml('<CompleteMultipartUploadResult/>')
        case 'DELETE upload':
          uploads.delete('u1')
          return new Response(null, { status: 204 })
        case 'PUT object':
          objects.set(key, body)
          return new Response('')
        case 'DELETE object':
          objects.delete(key)
          return new Response(null, { status: 204 })
      }
      if (!object) return new Response('<Error><Code>NoSuchKey</Code></Error>', { status: 404 })
      const [, from = '0', to] = /bytes=(\d+)-(\d+)/.exec(request.headers.get('range') ?? '') ?? []
      return new Response(
        request.method === 'HEAD' ? null : new Uint8Array(object.subarray(Number(from), to ? Number(to) + 1 : undefined)),
        {
          headers: { 'content-length': String(object.length) },
        },
      )
    },
  })
  return { server, objects, uploads, requests, answers }
}

/** A target whose retries take no time. */
function target() {
  const clock = makeClock({ sleep: async () => {} })
  const place = {
    endpoint: `http://127.0.0.1:${peer.server.port}`,
    bucket: 'backups',
    region: 'r',
    accessKeyId: 'id',
    secretAccessKey: 'secret',
    ca: undefined,
  }
  return new S3Target({ name: 'bucket', cluster, prefix: 'a/b' }, new S3Client(place, clock), files)
}

function taken(length: number): TakenBackup {
  const path = join(home, 'backup.age')
  const content = Buffer.alloc(length, 7)
  writeFileSync(path, content)
  const sha256 = createHash('sha256').update(content).digest('hex')
  const named = { cluster, taken: new Date('2026-01-01T00:00:00Z'), revision: 1, hash: sha256.slice(0, 16) }
  return { ...named, name: backupName(named), path, size: length, sha256, keys: 1 }
}

for (const length of [10, partLength, partLength + 5])
  test(`a backup of ${length} bytes is stored, listed, read and removed`, async () => {
    const backup = taken(length)
    await target().store(backup, signal)
    expect(peer.requests.slice(0, -1)).toEqual(length > partLength ? ['POST begin', 'PUT part', 'PUT part', 'POST upload'] : ['PUT object'])
    peer.objects.set('a/b/notes.txt', Buffer.of(1))
    const found = await target().contents(signal)
    expect(found.backups).toMatchObject([{ name: backup.name, size: length, state: 'unchecked' }])
    expect(found.foreign).toEqual(['notes.txt'])
    const read = Buffer.concat(await Array.fromAsync(target().read(backup.name, signal)))
    expect(createHash('sha256').update(read).digest('hex')).toBe(backup.sha256)
    await target().remove(backup.name, signal)
    expect([...peer.objects.keys()]).toEqual(['a/b/notes.txt'])
  })

test('an upload that fails half way leaves nothing behind', async () => {
  peer.answers.push((what) =>
    what === 'PUT part' ? new Response('<Error><Code>QuotaExceeded</Code></Error>', { status: 403 }) : undefined,
  )
  await expect(target().store(taken(partLength + 5), signal)).rejects.toThrow('QuotaExceeded')
  expect([peer.uploads.size, peer.objects.size]).toEqual([0, 0])
})

test('an error in an answer of success is one', async () => {
  peer.answers.push((what) => (what === 'POST upload' ? new Response('<Error><Code>InternalError</Code></Error>') : undefined))
  await expect(target().store(taken(partLength + 5), signal)).rejects.toThrow('InternalError')
  expect(peer.uploads.size).toBe(0)
})

test('what may pass is tried again, what does not is reported at once, without the secret', async () => {
  const busy = () => new Response('', { status: 503 })
  peer.answers.push(busy, busy)
  await target().store(taken(10), signal)
  expect(peer.requests.filter((what) => what === 'PUT object')).toHaveLength(3)
  peer.requests.length = 0
  peer.answers.push(() => new Response('<Error><Code>AccessDenied</Code><Message>no</Message></Error>', { status: 403 }))
  const error = await target().contents(signal).catch(String)
  expect(error).toMatch(/^S3Error: 127\.0\.0\.1:\d+ backups: AccessDenied: no$/)
  expect(peer.requests).toHaveLength(1)
})

test('a server that is gone, and a signal, end a call', async () => {
  await peer.server.stop(true)
  await expect(target().contents(signal)).rejects.toThrow(/^127\.0\.0\.1:\d+ backups: \w+$/)
  await expect(target().contents(AbortSignal.abort(new Error('stopped')))).rejects.toThrow('stopped')
})

test('an object that is shorter than what was stored is no backup', async () => {
  peer.answers.push((what) => (what === 'HEAD object' ? new Response(null, { headers: { 'content-length': '3' } }) : undefined))
  await expect(target().store(taken(10), signal)).rejects.toThrow('has 3 bytes in the bucket, 10 were stored')
})
