/**
 * Records who called what, from where, and the outcome. A call that may change something is written before it takes effect and
 * again when it has ended. Calls without side effects and refused calls are counted and written once a second, a few lines at
 * most, to a log of their own, so that callers with read access cannot push changes out of the log. Whether a method changes
 * something is declared with it. Requests are never written, so no secret can be.
 */
import { callerAddress, callerName } from '../../../rpc/caller-metadata.ts'
import { methodShape } from '../../../rpc/schema.ts'
import type { AdmittedCall, CallObserver } from '../../../rpc/server/call.ts'
import type { StatusName } from '../../../rpc/status.ts'

/** One line of the log. */
export interface AuditRecord {
  readonly time: Date
  readonly method: string
  /** Status of the call, `OK` or one of gRPC's names. */
  readonly outcome: string
  /** Address of the caller, as seen by the node that it called first. */
  readonly from: string
  /** Common name of its certificate. */
  readonly by: string
  readonly roles: readonly string[]
  /** Duration of the call; the longest of several. */
  readonly milliseconds: number
  /** How many equal calls this line stands for. */
  readonly calls: number
}

/** Calls that may change something, and all others. */
export type AuditKind = 'changes' | 'reads'

/** Where lines are written. */
export interface AuditSinks {
  write(lines: string, kind: AuditKind): void
  now?: () => Date
  /** Milliseconds between two writes of the counted calls. */
  every?: number
}

/** Limits per second: kinds of calls that are counted separately, and lines that are written of them. */
const maxKinds = 1000
const maxLines = 20
/** Records that are kept in memory. */
const maxRecent: Readonly<Record<AuditKind, number>> = { changes: 200, reads: 100 }

interface Count {
  readonly record: AuditRecord
  calls: number
  longest: number
}

/** The log of the calls of one machine. */
export class AuditLog implements CallObserver {
  readonly #sinks: AuditSinks
  readonly #now: () => Date
  readonly #started = new WeakSet<AdmittedCall>()
  readonly #counted = new Map<string, Count>()
  readonly #recent: Readonly<Record<AuditKind, (readonly [number, AuditRecord])[]>> = { changes: [], reads: [] }
  readonly #listeners = new Set<() => void>()
  #timer?: ReturnType<typeof setTimeout> | undefined
  #sequence = 0

  constructor(sinks: AuditSinks) {
    this.#sinks = sinks
    this.#now = sinks.now ?? (() => new Date())
  }

  began(): void {}

  admitted(call: AdmittedCall): void {
    if (methodShape(call.method.path).readOnly) return
    this.#started.add(call)
    this.#write('changes', [this.#recordOf(call, 'started', 0)])
  }

  ended(call: AdmittedCall, status: StatusName | 'OK', milliseconds: number): void {
    if (this.#started.has(call)) this.#write('changes', [this.#recordOf(call, status, milliseconds)])
    else this.#count(call, status, milliseconds)
  }

  /** Writes the counted calls: refusals first, then the most frequent calls; the rest as one line. */
  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const counts = [...this.#counted.values()]
    this.#counted.clear()
    if (counts.length === 0) return
    counts.sort((a, b) => Number(isRefusal(b.record.outcome)) - Number(isRefusal(a.record.outcome)) || b.calls - a.calls)
    const records = counts.slice(0, maxLines).map(({ record, calls, longest }) => ({ ...record, calls, milliseconds: longest }))
    const rest = counts.slice(maxLines)
    if (rest.length > 0) records.push(othersOf(rest, this.#now()))
    this.#write('reads', records)
  }

  /** The latest records by number, oldest first. */
  recent(): (readonly [number, AuditRecord])[] {
    return [...this.#recent.changes, ...this.#recent.reads].sort(([a], [b]) => a - b)
  }

  /** Calls back after each write, until the returned function is called. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  #count(call: AdmittedCall, status: StatusName | 'OK', milliseconds: number): void {
    const { from, name } = callerOf(call)
    let roles = ''
    for (const role of call.roles) roles += role
    const kind = `${call.method.path} ${status} ${from} ${name} ${roles}`
    const key = this.#counted.has(kind) || this.#counted.size < maxKinds ? kind : others
    const counted = this.#counted.get(key)
    if (counted) {
      counted.calls++
      if (milliseconds > counted.longest) counted.longest = milliseconds
      return
    }
    const record = key === others ? othersOf([], this.#now()) : this.#recordOf(call, status, milliseconds)
    this.#counted.set(key, { record, calls: 1, longest: milliseconds })
    this.#timer ??= setTimeout(() => this.flush(), this.#sinks.every ?? 1000).unref()
  }

  #recordOf(call: AdmittedCall, outcome: string, milliseconds: number): AuditRecord {
    const { from, name } = callerOf(call)
    return {
      time: this.#now(),
      method: call.method.path,
      outcome,
      from: from.replace(/[^\w.:[\]-]/g, '').slice(0, 64),
      by: decoded(name).slice(0, 256),
      roles: [...call.roles].sort(),
      milliseconds,
      calls: 1,
    }
  }

  #write(kind: AuditKind, records: readonly AuditRecord[]): void {
    const recent = this.#recent[kind]
    for (const record of records) recent.push([++this.#sequence, record])
    recent.splice(0, Math.max(0, recent.length - maxRecent[kind]))
    this.#sinks.write(records.map((record) => `${auditLine(record)}\n`).join(''), kind)
    for (const listener of [...this.#listeners]) listener()
  }
}

const others = 'others'

/** One record for many different calls. */
function othersOf(counts: readonly Count[], time: Date): AuditRecord {
  const calls = counts.reduce((sum, count) => sum + count.calls, 0)
  const milliseconds = Math.max(0, ...counts.map(({ longest }) => longest))
  return { time, method: others, outcome: others, from: others, by: '', roles: [], milliseconds, calls }
}

const isRefusal = (outcome: string) => outcome === 'PermissionDenied' || outcome === 'Unauthenticated'

function callerOf({ metadata, peer }: AdmittedCall): { from: string; name: string } {
  return { from: metadata[callerAddress]?.[0] ?? peer, name: metadata[callerName]?.[0] ?? '' }
}

/** A record as a line of text. */
export function auditLine({ time, method, outcome, from, by, roles, milliseconds, calls }: AuditRecord): string {
  const often = calls > 1 ? ` calls=${calls}` : ''
  return `${time.toISOString()} method=${method} outcome=${outcome} from=${from} by=${JSON.stringify(by)} roles=${roles.join(',')} ms=${milliseconds.toFixed(1)}${often}`
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
