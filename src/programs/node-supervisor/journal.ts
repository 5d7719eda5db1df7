/**
 * What a cluster has made on this host, written down before it is made.
 * Each line is one intent; the act follows once the line is on the disk. So whatever exists is in the journal, even when the
 * writer was killed between two instructions, and undoing must accept that an intent was never carried out.
 */

import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, readFileSync, writeSync } from 'node:fs'
import { dirname, join } from 'node:path'
import * as v from 'valibot'

const path = v.pipe(v.string(), v.startsWith('/'))
const node = v.optional(v.string())

const Entry = v.variant('kind', [
  v.object({ kind: v.literal('directory'), path, node }),
  v.object({ kind: v.literal('mount'), target: path, node }),
  v.object({ kind: v.literal('loop'), backing: path, device: v.optional(path), node }),
  v.object({ kind: v.literal('link'), name: v.pipe(v.string(), v.regex(/^[a-z0-9]{1,15}$/)), node }),
  v.object({ kind: v.literal('netns'), path, node }),
  v.object({ kind: v.literal('cgroup'), path, node }),
  v.object({ kind: v.literal('nftables'), table: v.pipe(v.string(), v.regex(/^[a-z0-9_]{1,31}$/)), rootfs: v.optional(path), node }),
  v.object({ kind: v.literal('iptables'), iptables: path, bridge: v.pipe(v.string(), v.regex(/^[a-z0-9]{1,15}$/)), node }),
  v.object({ kind: v.literal('sysctl'), name: v.string(), previous: v.string(), node }),
  v.object({ kind: v.literal('unit'), name: v.pipe(v.string(), v.regex(/^ichor-[a-z0-9-]{1,100}\.service$/)), node }),
  v.object({ kind: v.literal('engine'), socket: path, cluster: v.string(), node }),
  v.object({ kind: v.literal('program'), args: v.array(v.string()), node }),
  v.object({ kind: v.literal('forgotten'), node: v.string() }),
  v.object({ kind: v.literal('process'), pid: v.pipe(v.number(), v.integer(), v.minValue(2)), start: v.string(), node }),
])

type Line = v.InferOutput<typeof Entry>

/** One thing made, or about to be made, on the host. */
export type JournalEntry = Exclude<Line, { kind: 'forgotten' }>

const sizeLimit = 16 * 1024 * 1024

/** The journal is there but cannot be understood. */
export class JournalError extends Error {
  override name = 'JournalError'
}

/** The journal of one cluster, shared by the command and the supervisors. */
export class Journal {
  constructor(readonly file: string) {}

  /** Writes an intent and returns when it is on the disk. */
  write(entry: JournalEntry): void {
    this.#append(entry)
  }

  #append(entry: Line): void {
    const first = !existsSync(this.file)
    const fd = openSync(this.file, 'a', 0o600)
    try {
      // A line cut short by a crash must not swallow the one that follows it, so every line brings its own start.
      const line = Buffer.from(`\n${JSON.stringify(entry)}\n`)
      if (writeSync(fd, line) !== line.length) throw new JournalError(`write "${this.file}": the disk is full`)
      fsyncSync(fd)
    } finally {
      closeSync(fd)
    }
    if (first) syncDirectory(dirname(this.file))
  }

  /** All intents, oldest first, each once; a last line cut short was never acted upon and is left out. */
  entries(): JournalEntry[] {
    if (!existsSync(this.file)) return []
    const text = readFileSync(this.file, 'utf8')
    if (text.length > sizeLimit) throw new JournalError(`read "${this.file}": larger than ${sizeLimit} bytes`)
    const lines = text.split('\n').filter((line) => line !== '')
    const seen = new Map<string, JournalEntry>()
    for (const line of lines) {
      const entry = parse(line)
      if (entry?.kind === 'forgotten') {
        for (const [key, { node }] of seen) if (node === entry.node) seen.delete(key)
      } else if (entry) seen.set(JSON.stringify(entry), entry)
    }
    return [...seen.values()]
  }

  /** Forgets what a node had made, once it is gone. A line like any other: others may be writing theirs. */
  forget(name: string): void {
    this.#append({ kind: 'forgotten', node: name })
  }
}

/** Opens the journal of the cluster kept in a directory, which is made when it is not there. */
export function openJournal(clusterDirectory: string): Journal {
  mkdirSync(clusterDirectory, { recursive: true, mode: 0o700 })
  return new Journal(join(clusterDirectory, 'journal'))
}

function parse(line: string): Line | undefined {
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch {
    return undefined
  }
  const result = v.safeParse(Entry, value)
  if (!result.success) throw new JournalError(`read journal: unknown entry ${line.slice(0, 200)}: it was written by another version`)
  return result.output
}

function syncDirectory(directory: string): void {
  const fd = openSync(directory, 'r')
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}
