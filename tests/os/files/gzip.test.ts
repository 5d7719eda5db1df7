import { expect, test } from 'bun:test'
import { gunzipSync } from 'node:zlib'
import { gzipped } from '../../../src/os/files/gzip.ts'

async function packed(chunks: Uint8Array[]): Promise<Buffer> {
  const made: Buffer[] = []
  for await (const piece of gzipped(
    (async function* () {
      yield* chunks
    })(),
  ))
    made.push(piece)
  return Buffer.concat(made)
}

const random = (size: number) => {
  const bytes = Buffer.alloc(size)
  for (let at = 0; at < size; at += 65_536) crypto.getRandomValues(bytes.subarray(at, Math.min(at + 65_536, size)))
  return bytes
}

test.each<[string, Uint8Array[]]>([
  ['nothing', []],
  ['a word', [Buffer.from('word')]],
  ['text in many pieces', Array.from({ length: 5000 }, (_, n) => Buffer.from(`line ${n} of a log with similar lines\n`))],
  ['what cannot become smaller', [random(3_000_000)]],
  ['a piece as long as a stored block', [random(65_535), random(65_535 * 4)]],
  ['both in turn', Array.from({ length: 20 }, (_, n) => (n % 2 ? random(200_000) : Buffer.alloc(200_000, 'a')))],
])('%s is read back by another implementation', async (_, chunks) => {
  expect(gunzipSync(await packed(chunks)).equals(Buffer.concat(chunks))).toBe(true)
})

test('incompressible data hardly grows, compressible data shrinks', async () => {
  expect((await packed([random(1 << 20)])).length).toBeLessThan((1 << 20) * 1.001)
  expect((await packed([Buffer.alloc(1 << 20, 'abc')])).length).toBeLessThan(20_000)
})

test('an error of the input is the error of the stream', async () => {
  const failing = (async function* () {
    yield random(600_000)
    throw new Error('the disk is gone')
  })()
  await expect(Array.fromAsync(gzipped(failing))).rejects.toThrow('the disk is gone')
})

test('the tar and gzip programs read it', async () => {
  const child = Bun.spawn(['gzip', '-dc'], { stdin: await packed([random(700_000), Buffer.from('end')]), stdout: 'pipe' })
  const out = Buffer.from(await new Response(child.stdout).arrayBuffer())
  expect(await child.exited).toBe(0)
  expect(out.subarray(-3).toString()).toBe('end')
})
