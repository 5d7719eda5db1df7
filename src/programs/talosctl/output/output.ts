/** What a table shows, for programs: the nodes' own answers as JSON or YAML. */

import { Option } from 'commander'
import type { Cluster } from '../cluster.ts'
import type { Io } from '../io.ts'
import type { ReplyMetadata } from '../reply-metadata.ts'
import { rfc3339 } from './units.ts'

/** How a result is written. */
export type OutputFormat = 'table' | 'json' | 'yaml'

/** The flags of a command that shows a table. */
export interface OutputFlags {
  output: OutputFormat
}

/** Declares the flag; its short form is left out where it means something else. */
export function outputOption(short = true): Option {
  return new Option(`${short ? '-o, ' : ''}--output <format>`, 'how to show it').choices(['table', 'json', 'yaml']).default('table')
}

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
