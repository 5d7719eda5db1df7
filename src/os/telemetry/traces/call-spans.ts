import { callerAddress } from '../../../rpc/caller-metadata.ts'
import type { AdmittedCall, CallObserver } from '../../../rpc/server/call.ts'
import type { StatusName } from '../../../rpc/status.ts'
import { parseTraceParent, randomId } from './span.ts'
import { SpanQueue } from './span-queue.ts'

/** Makes a span of every call that is traced: all calls of traced callers, and a sample of the others. */
export class CallSpans implements CallObserver {
  /** The spans that wait for a collector. */
  readonly queue = new SpanQueue()
  #ratio: number | undefined

  /** Sets the sampled share of the traces that start here from now on; undefined disables tracing. */
  use(ratio: number | undefined): void {
    this.#ratio = ratio
  }

  began(): void {}

  ended({ method, metadata, peer, roles }: AdmittedCall, status: StatusName | 'OK', milliseconds: number): void {
    const ratio = this.#ratio
    if (ratio === undefined) return
    const parent = parseTraceParent(metadata.traceparent?.[0])
    if (parent ? !parent.sampled : Math.random() >= ratio) return
    const end = Date.now()
    const [service = '', name = ''] = method.path.split('/')
    this.queue.add({
      traceId: parent?.traceId ?? randomId(16),
      spanId: randomId(8),
      parentSpanId: parent?.parentSpanId,
      name: method.path,
      start: end - milliseconds,
      end,
      attributes: {
        'rpc.system': 'grpc',
        'rpc.service': service,
        'rpc.method': name,
        'rpc.response.status_code': status,
        'client.address': metadata[callerAddress]?.[0] ?? peer,
        'enduser.role': [...roles].join(','),
      },
      failure: status === 'OK' ? undefined : status,
    })
  }
}
