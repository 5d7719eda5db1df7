/**
 * The image factory over a release that mkimage.sh has made: the time from a schematic to the first byte of its images, built and kept,
 * clients that download at the same time, what extensions of some sizes add to an ISO, and the most memory that the factory had. It makes a factory of its own, with a cache that is
 * removed afterwards.
 *
 *   bun bench/factory.ts [--images dist] [--downloads 100] [--builds 10] [--extensions 1,16,64]
 */
import { randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { imageKey } from '../rootfs/image/key.ts'
import { median } from './median.ts'

const { values } = parseArgs({
  options: {
    images: { type: 'string', default: 'dist' },
    downloads: { type: 'string', default: '100' },
    builds: { type: 'string', default: '10' },
    extensions: { type: 'string', default: '1,16,64' },
  },
})
const [downloads, builds] = [Number(values.downloads), Number(values.builds)]
const folder = mkdtempSync(join(tmpdir(), 'ichor-bench-factory-'))
const main = [process.execPath, join(import.meta.dir, '../src/main.ts')]
const sizes = values.extensions.split(',').map(Number)
for (const size of sizes) await buildExtension(size)
const kept = ['--cache', join(folder, 'cache'), '--extensions', join(folder, 'extensions'), '--key', imageKey().path]
const child = Bun.spawn([...main, 'factory', 'serve', '--images', values.images, '--listen', '127.0.0.1:0', ...kept], {
  stdio: ['ignore', 'ignore', 'pipe'],
})
try {
  const url = await listening(child.stderr)
  const [version = ''] = (await (await fetch(`${url}/versions`)).json()) as string[]
  console.log('| what | time |\n|---|---|')
  let number = 0
  /** The address of the images of a schematic that nobody has requested before. */
  const schematic = async (officialExtensions: readonly string[] = []): Promise<string> => {
    const body = JSON.stringify({
      customization: { extraKernelArgs: [`bench.number=${++number}`], systemExtensions: { officialExtensions } },
    })
    const { id } = (await (await fetch(`${url}/schematics`, { method: 'POST', body })).json()) as { id: string }
    return `${url}/image/${id}/${version}`
  }
  for (const name of ['metal-amd64.iso', 'installer-amd64.tar', 'metal-amd64.raw', 'metal-amd64-uki.efi']) {
    const [first, again]: [number[], number[]] = [[], []]
    let found = true
    for (let run = 0; run < 3 && found; run++) {
      const address = `${await schematic()}/${name}`
      const { seconds, status } = await firstByte(address)
      found = status === 200
      first.push(seconds)
      again.push((await firstByte(address)).seconds)
    }
    if (found) console.log(`| ${name}: first byte, built | ${shown(median(first))} |\n| the same again | ${shown(median(again))} |`)
  }
  const one = `${await schematic()}/metal-amd64.iso`
  const plain = await firstByte(one)
  for (const size of sizes) {
    const iso = await firstByte(`${await schematic([nameOf(size)])}/metal-amd64.iso`)
    const added = ((iso.size - plain.size) / (1 << 20)).toFixed(1)
    console.log(
      `| ISO with an extension of ${size} MiB that cannot be compressed: first byte, built; ${added} MiB larger | ${shown(iso.seconds)} |`,
    )
  }
  const many = await clients(Array.from({ length: downloads }, () => one))
  console.log(
    `| ${downloads} downloads of one ISO at a time: ${many.whole} whole, ${many.refused} refused for now | ${shown(many.seconds)} |`,
  )
  const fresh = await Promise.all(Array.from({ length: builds }, async () => `${await schematic()}/metal-amd64.iso`))
  const built = await clients(fresh)
  console.log(
    `| ${builds} ISOs of different schematics at a time: ${built.whole} whole, ${built.refused} refused for now | ${shown(built.seconds)} |`,
  )
  const [, peak = '0'] = /^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8')) ?? []
  console.log(`\nmost memory of the factory: ${Math.round(Number(peak) / 1024)} MiB`)
} finally {
  child.kill()
  await child.exited
  rmSync(folder, { recursive: true, force: true })
}

/** An extension with a file of a size in mebibytes. */
async function buildExtension(size: number): Promise<void> {
  const name = nameOf(size)
  const files = join(folder, name, 'rootfs/usr/local/share', name)
  mkdirSync(files, { recursive: true })
  mkdirSync(join(folder, 'extensions'), { recursive: true })
  writeFileSync(join(files, 'data'), randomBytes(size << 20), { mode: 0o644 })
  const flags = ['--name', name, '--version', '1', '--output', join(folder, 'extensions', `${name}.tar`)]
  const child = Bun.spawn([...main, 'talosctl', 'extension', 'build', join(folder, name), ...flags], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  if ((await child.exited) !== 0) throw new Error(`extension "${name}" was not built`)
}

function nameOf(size: number): string {
  return `extension-${size}`
}

/** The address of a factory, which it logs once it listens; what it logs later is dropped. */
function listening(stderr: ReadableStream<Uint8Array>): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const read = async () => {
    let text = ''
    for await (const bytes of stderr) {
      if (text.length < 10_000) text += Buffer.from(bytes).toString()
      const [, url] = /url="?(http:\/\/[^\s"]+)/.exec(text) ?? []
      if (url) resolve(url)
    }
    reject(new Error(`the factory ended: ${text}`))
  }
  read().catch(reject)
  return promise
}

function shown(seconds: number): string {
  return seconds < 1 ? `${Math.round(seconds * 1000)} ms` : `${seconds.toFixed(1)} s`
}

async function firstByte(address: string): Promise<{ seconds: number; status: number; size: number }> {
  const started = performance.now()
  const answer = await fetch(address)
  const reader = answer.body?.getReader()
  await reader?.read()
  const seconds = (performance.now() - started) / 1000
  await reader?.cancel()
  return { seconds, status: answer.status, size: Number(answer.headers.get('content-length')) }
}

/** Downloads all of them at once in a process of their own, without keeping what comes. */
async function clients(addresses: readonly string[]): Promise<{ whole: number; refused: number; seconds: number }> {
  const code = `
    const results = await Promise.all(JSON.parse(process.argv[1]).map(async (address) => {
      const answer = await fetch(address)
      let size = 0
      for await (const piece of answer.body ?? []) size += piece.length
      return [answer.status, answer.status === 200 && size === Number(answer.headers.get('content-length'))]
    }))
    console.log(JSON.stringify(results))`
  const started = performance.now()
  const run = Bun.spawn([process.execPath, '-e', code, JSON.stringify(addresses)], { stdio: ['ignore', 'pipe', 'inherit'] })
  const results = JSON.parse(await new Response(run.stdout).text()) as [number, boolean][]
  const seconds = (performance.now() - started) / 1000
  return { whole: results.filter(([, whole]) => whole).length, refused: results.filter(([status]) => status === 503).length, seconds }
}
