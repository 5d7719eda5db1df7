/** Starts the client that records calls on etcd, and has its record judged. */
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { succeeded } from '../../cluster/cluster.ts'
import { run } from '../etcd-tools.ts'

/** What the judge counts. */
export interface RecordFigures {
  readonly Calls: number
  readonly Acknowledged: number
  readonly Unknown: number
  readonly Events: number
  /** Seconds. */
  readonly LongestGap: number
  readonly Seconds: number
  readonly CheckSeconds: number
  readonly Lost: readonly string[]
}

/** The two programs of this folder. */
export class RecordTools {
  readonly #folder: string
  readonly #record: string

  constructor(folder: string) {
    this.#folder = folder
    this.#record = join(folder, 'record')
  }

  async build(): Promise<void> {
    mkdirSync(this.#record, { recursive: true })
    succeeded(await run(['go', 'build', '-o', join(this.#folder, 'client'), '.'], { cwd: import.meta.dir }))
    succeeded(await run(['go', 'test', '-c', '-o', join(this.#folder, 'judge'), '.'], { cwd: import.meta.dir }))
  }

  /** Starts recording through the members of these nodes, with the certificates in a folder; `stop` ends it and resolves when all was read. */
  start(nodes: readonly string[], certificates: string): { stop(): Promise<void> } {
    const file = (name: string) => join(certificates, name)
    const endpoints = nodes.map((node) => `https://${node}:2379`).join(',')
    const tls = ['--cacert', file('ca.crt'), '--cert', file('admin.crt'), '--key', file('admin.key')]
    const child = Bun.spawn([join(this.#folder, 'client'), '--endpoints', endpoints, '--out', this.#record, ...tls], {
      stdin: 'pipe',
      stdout: 'inherit',
      stderr: 'pipe',
    })
    const errors = new Response(child.stderr).text()
    return {
      async stop() {
        child.stdin.end()
        if ((await child.exited) !== 0) throw new Error(await errors)
      },
    }
  }

  /** Judges the record; throws with what is wrong. */
  async judge(): Promise<RecordFigures> {
    const argv = [join(this.#folder, 'judge'), '-test.v', '-test.timeout=20m']
    succeeded(await run(['env', `RECORD=${this.#record}`, ...argv]))
    return JSON.parse(readFileSync(join(this.#record, 'figures.json'), 'utf8'))
  }
}
