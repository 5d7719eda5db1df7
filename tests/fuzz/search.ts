/** The search of guided.ts, under Node: an input that runs a block it never ran, or runs one much oftener, is kept to be changed again. */
import './stand-in.ts'
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { Session } from 'node:inspector'
import { join } from 'node:path'
import { mutated, numbers } from './mutate.ts'
import { feed } from './target.ts'
import { targets } from './targets.ts'

const [name = '', folder = '', seconds = '60'] = process.argv.slice(2)
const target = targets[name]!

const inspector = new Session()
inspector.connect()
inspector.post('Profiler.enable')
inspector.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true })

/** Blocks that have run, and roughly how often. */
const seen = new Set<string>()

/** The blocks that ran since the last question: each alone, and with how often. */
function ran(): { blocks: string[]; often: string[] } {
  const blocks: string[] = []
  const often: string[] = []
  inspector.post('Profiler.takePreciseCoverage', (_, { result }) => {
    for (const { url, functions } of result) {
      if (!url.endsWith('search.js')) continue
      for (const { ranges } of functions)
        for (const { startOffset, count } of ranges) {
          if (count === 0) continue
          blocks.push(`${startOffset}`)
          often.push(`${startOffset}:${Math.floor(Math.log2(count) / 2)}`)
        }
    }
  })
  return { blocks, often }
}

/** Notes what ran; whether anything of it was new. */
function note(): boolean {
  const { blocks, often } = ran()
  const before = seen.size
  for (const each of [...blocks, ...often]) seen.add(each)
  return seen.size > before
}

const key = (input: Uint8Array) => createHash('sha256').update(input).digest('hex').slice(0, 16)

async function tried(input: Uint8Array): Promise<void> {
  try {
    await feed(target, input)
  } catch (error) {
    const file = join(folder, `fault-${key(input)}`)
    writeFileSync(file, input)
    console.error(`${name}: ${(error as Error).stack}\nthe input is in ${file}`)
    process.exit(1)
  }
}

const kept = readdirSync(folder).map((file) => new Uint8Array(readFileSync(join(folder, file))))
const corpus = [...target.seeds, ...kept]
for (const input of corpus) {
  await tried(input)
  note()
}
const pick = numbers(Date.now())
const end = Date.now() + Number(seconds) * 1000
/** Reading the coverage takes longer than most inputs, so several are run before each reading. */
const together = 24
let runs = 0
while (Date.now() < end) {
  const inputs = Array.from({ length: together }, () => mutated(corpus, pick))
  for (const input of inputs) await tried(input)
  runs += together
  const fresh = ran().blocks.some((block) => !seen.has(block))
  // Once in a while also those are looked at that only ran something oftener.
  if (!fresh && pick(20) > 0) continue
  for (const input of inputs) {
    await tried(input)
    if (!note()) continue
    corpus.push(input)
    writeFileSync(join(folder, key(input)), input)
  }
}
console.log(`${name}: ${runs} inputs, ${corpus.length} kept`)
