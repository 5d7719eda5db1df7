/** What a table shows, for programs: the nodes' own answers as JSON or YAML. */

import { Option } from 'commander'
import type { Cluster } from '../cluster.ts'
import type { Io } from '../io.ts'
import type { ReplyMetadata } from '../reply-metadata.ts'
import type { LazySchema } from './schema.ts'
import { rfc3339 } from './units.ts'

/** How a result is written. */
export type OutputFormat = 'table' | 'json' | 'yaml'

/** The flags of a command that shows a table. */
export interface OutputFlags {
  output: OutputFormat
}

/** What the JSON and YAML of a command are beyond the list of its items. */
interface OutputDetails {
  /** False where the short form means something else. */
  readonly short?: boolean
  /** What is printed, where it is not a list. */
  readonly about?: string
  /** Items of other uses of the command, by what is used. */
  readonly others?: Readonly<Record<string, LazySchema>>
}

/** The flag of a command that shows a table, with the schemas of what it prints for programs. */
export class OutputOption extends Option {
  readonly about: string
  readonly others: Readonly<Record<string, LazySchema>>

  constructor(
    readonly item: LazySchema,
    { short = true, about = 'a list, each item of which is', others = {} }: OutputDetails,
  ) {
    super(`${short ? '-o, ' : ''}--output <format>`, 'how to show it')
    this.about = about
    this.others = others
    this.choices(['table', 'json', 'yaml']).default('table')
  }
}

/** Declares the flag. The schema is a promise to scripts: keys are added and never change. */
export const outputOption = (item: LazySchema, details: OutputDetails = {}): OutputOption => new OutputOption(item, details)

/** Writes values as one JSON or YAML list; false when a table is wanted. */
export function structured(io: Io, format: OutputFormat | undefined, values: readonly unknown[]): boolean {
  if (format === 'json') io.stdout.write(`${JSON.stringify(plain(values), null, 2)}\n`)
  else if (format === 'yaml') io.stdout.write(`${Bun.YAML.stringify(plain(values), null, 2)}\n`)
  else return false
  return true
}

/** Messages with the node they are from in place of their metadata. */
export function withNodes<Message extends { metadata?: ReplyMetadata | null }>(
  cluster: Cluster,
  peer: string,
  messages: readonly Message[],
): object[] {
  return messages.map((message) => {
    const { metadata: _, ...rest } = message
    return { node: cluster.nodeOf(message, peer), ...rest }
  })
}

/** Bytes as base64 and moments as texts; everything else as it is. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain)
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64')
  if (typeof value !== 'object' || value === null) return value
  const { seconds, nanos, ...rest } = value as Record<string, unknown>
  if (typeof seconds === 'number' && typeof nanos === 'number' && Object.keys(rest).length === 0) return rfc3339({ seconds, nanos })
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, plain(one)]))
}
