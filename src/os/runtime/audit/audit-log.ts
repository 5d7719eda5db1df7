/**
 * Who called what, from where, and how it ended: a log that only grows. What changes the machine is written at once;
 * calls that only look, and calls that were refused, are counted, and written once a second with their number, so that
 * neither a busy reader nor a flood of refusals can push the rest out. Requests are never written, so no secret can be.
 */
import type { AdmittedCall, CallObserver } from '../../../rpc/server/call.ts'
import type { StatusName } from '../../../rpc/status.ts'
import { callerAddress, callerName } from './caller-metadata.ts'

/** One line of the log. */
export interface AuditRecord {
  readonly time: Date
  readonly method: string
  /** Status of the call, `OK` or one of gRPC's names. */
  readonly outcome: string
  /** Address of the caller, as the node it called first has seen it. */
  readonly from: string
  /** Common name of its certificate. */
  readonly by: string
  readonly roles: readonly string[]
  /** How long it took; the longest of several. */
  readonly milliseconds: number
  /** How many calls alike this line stands for. */
  readonly calls: number
}

/** Where lines go. */
export interface AuditSinks {
  write(lines: string): void
  now?: () => Date
  /** Milliseconds between two writings of what was counted. */
  every?: number
}

const maxKinds = 1000
const maxRecent = 200

/** The log of the calls of one machine. */
export class AuditLog implements CallObserver {
  readonly #sinks: AuditSinks
  readonly #now: () => Date
  readonly #counted = new Map<string, { record: AuditRecord; calls: number; longest: number }>()
  readonly #recent: AuditRecord[] = []
  readonly #listeners = new Set<() => void>()
  #timer?: ReturnType<typeof setTimeout>
  #sequence = 0

  constructor(sinks: AuditSinks) {
    this.#sinks = sinks
    this.#now = sinks.now ?? (() => new Date())
  }

  began(): void {}

  ended(call: AdmittedCall, status: StatusName | 'OK', milliseconds: number): void {
    const { method, metadata, roles } = call
    const from = metadata[callerAddress]?.[0] ?? call.peer
    const name = metadata[callerName]?.[0] ?? ''
    const refused = status === 'PermissionDenied' || status === 'Unauthenticated'
    const looks = method.access !== 'anyone' && method.access.includes('os:reader')
    if (!looks && !refused) {
      this.#write([recordOf(call, status, from, name, this.#now(), milliseconds, 1)])
      return
    }
    let named = ''
    for (const role of roles) named += role
    const key = `${method.path} ${status} ${from} ${name} ${named}`
    const counted = this.#counted.get(key)
    if (counted) {
      counted.calls++
      if (milliseconds > counted.longest) counted.longest = milliseconds
      return
    }
    if (this.#counted.size >= maxKinds) this.flush()
    const record = recordOf(call, status, from, name, this.#now(), milliseconds, 1)
    this.#counted.set(key, { record, calls: 1, longest: milliseconds })
    this.#timer ??= setTimeout(() => this.flush(), this.#sinks.every ?? 1000).unref()
  }

  /** Writes what was counted. */
  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const records = [...this.#counted.values()].map(({ record, calls, longest }) => ({ ...record, calls, milliseconds: longest }))
    this.#counted.clear()
    if (records.length > 0) this.#write(records)
  }

  /** The last records by the number of each, oldest first. */
  recent(): (readonly [number, AuditRecord])[] {
    const first = this.#sequence - this.#recent.length
    return this.#recent.map((record, index) => [first + index + 1, record] as const)
  }

  /** Calls back after each writing, until the returned function is called. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  #write(records: readonly AuditRecord[]): void {
    this.#sequence += records.length
    this.#recent.push(...records)
    this.#recent.splice(0, Math.max(0, this.#recent.length - maxRecent))
    this.#sinks.write(records.map((record) => `${auditLine(record)}\n`).join(''))
    for (const listener of [...this.#listeners]) listener()
  }
}

/** A record as a line of text. */
export function auditLine({ time, method, outcome, from, by, roles, milliseconds, calls }: AuditRecord): string {
  const often = calls > 1 ? ` calls=${calls}` : ''
  return `${time.toISOString()} method=${method} outcome=${outcome} from=${from} by=${JSON.stringify(by)} roles=${roles.join(',')} ms=${milliseconds.toFixed(1)}${often}`
}

function recordOf(
  { method, roles }: AdmittedCall,
  outcome: string,
  from: string,
  name: string,
  time: Date,
  milliseconds: number,
  calls: number,
): AuditRecord {
  return {
    time,
    method: method.path,
    outcome,
    from: from.replace(/[^\w.:[\]-]/g, '').slice(0, 64),
    by: decoded(name).slice(0, 256),
    roles: [...roles].sort(),
    milliseconds,
    calls,
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
