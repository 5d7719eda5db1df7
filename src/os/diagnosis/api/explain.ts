import { allAliases } from '../../../cosi/meta.ts'
import type { ResourceType } from '../../../cosi/resource.ts'
import type { Store } from '../../../cosi/store.ts'
import { nearest } from '../../../document/nearest.ts'
import { ichor } from '../../../rpc/enums.ts'
import { toTimestamp } from '../../../rpc/proto-time.ts'
import { type Method, readers, unary } from '../../../rpc/server/method.ts'
import { RpcError } from '../../../rpc/status.ts'
import type { ServiceDefinition } from '../../../supervise/definition.ts'
import type { Machine } from '../../area.ts'
import { ConfigHistory } from '../../config/public.ts'
import { viewEtcd } from '../../etcd/public.ts'
import type { Cause } from '../cause.ts'
import { type Explanation, explainMachine, explainResource, type Machinery } from '../explain.ts'

const { Kind } = ichor.v1.Cause
const kinds = {
  absent: Kind.ABSENT,
  unhealthy: Kind.UNHEALTHY,
  failing: Kind.FAILING,
  service: Kind.SERVICE,
  outside: Kind.OUTSIDE,
} as const

/** Why a resource is missing or unhealthy; without a name, why the machine is not ready. */
export const explain = (machine: Pick<Machine, 'store' | 'runtime' | 'supervisor' | 'service' | 'kernel' | 'log'>): Method => {
  const machinery: Machinery = {
    store: machine.store,
    runtime: machine.runtime,
    supervisor: machine.supervisor,
    world: machine.kernel,
    definition: (id) => described(machine, id),
    log: (id) => machine.supervisor.logs.get(id),
    history: new ConfigHistory(machine.kernel.files, machine.log),
    etcd: () => viewEtcd(machine.store),
  }
  return unary('ichor.v1.ExplainService/Explain', readers, async ({ type, id, namespace }, { store, signal }) => {
    if (type === '') return answer(await explainMachine(machinery, { signal }))
    return answer(await explainResource(machinery, typeOf(store, type), id, { namespace: namespace || undefined, signal }))
  })
}

/** Services without a definition are looked up too: what depends on them is reported. */
function described({ service }: Pick<Machine, 'service'>, id: string): ServiceDefinition | undefined {
  try {
    return service(id)
  } catch {
    return undefined
  }
}

function typeOf(store: Store, name: string): ResourceType {
  const wanted = name.toLowerCase()
  const types = store.types()
  const found = types.find((type) => type.type.toLowerCase() === wanted) ?? types.find((type) => allAliases(type).includes(wanted))
  if (found) return found
  const near = nearest(
    wanted,
    types.flatMap((type) => allAliases(type)),
  )
  throw new RpcError('NotFound', `explain: no resource type is called "${name}"${near ? `, did you mean "${near}"?` : ''}`)
}

function answer({ subject, well, summary, causes }: Explanation) {
  const index = new Map(causes.map((cause, at) => [cause.subject, at]))
  return { messages: [{ subject, well, summary, causes: causes.map((cause) => message(cause, index)) }] }
}

function message({ kind, subject, sentence, error = '', since, times = 0, depth, because }: Cause, index: Map<string, number>) {
  const at = since && { since: toTimestamp(since) }
  return { kind: kinds[kind], subject, sentence, error, ...at, times, depth, because: because.flatMap((name) => index.get(name) ?? []) }
}
