import { afterAll } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silent } from '../../src/cosi/log.ts'
import type { Resource } from '../../src/cosi/resource.ts'
import { Store } from '../../src/cosi/store.ts'
import type { StoreEvent } from '../../src/cosi/store-table.ts'
import { type Channel, connect } from '../../src/rpc/client/channel.ts'
import { cosi as enums } from '../../src/rpc/enums.ts'
import type { cosi } from '../../src/rpc/messages.ts'
import { toMessage } from '../../src/rpc/resource-message.ts'
import { fromMessage } from '../../src/rpc/resource-of-message.ts'
import { serveUnix } from '../../src/rpc/server/server.ts'
import { stateMethods } from '../../src/rpc/server/state.ts'
import { unfilteredWrites } from '../../src/rpc/server/state-writes.ts'
import { RpcError } from '../../src/rpc/status.ts'
import { conformance, Kind, type Opened, type Seen, type Spec, type State, type Watching } from './conformance.ts'

const kind = { namespace: Kind.namespace, type: Kind.type }

/** Many changes at once, with strings so long that no buffer on the way holds them all. */
function storm(store: Store, id: string, changes: number): void {
  for (let at = 1; at <= changes; at++) store.update(Kind, id, { hostname: String(at), domainname: 'x'.repeat(2000) })
}

/** The store itself. */
function local(): Promise<Opened> {
  const store = new Store()
  const state: State = {
    get: async (id) => store.get(Kind, id),
    list: async ({ labels, id } = {}) => store.list(Kind, { labels, id: id === undefined ? undefined : new RegExp(id, 'u') }),
    create: async (id, spec, options) => store.create(Kind, id, spec, options),
    update: async (resource, options) => store.replace(Kind, resource, options),
    destroy: async (id, options) => store.destroy(Kind, id, options),
    async watch({ id, bootstrap, tail, after, labels, signal }) {
      const present = id === undefined ? undefined : store.get(Kind, id)
      const events = store.watch(Kind, { only: id, bootstrap, tail, after: after as number | undefined, labels, signal })
      const next = events.next()
      next.catch(() => {})
      return begun(events, next, id === undefined ? undefined : { type: present ? 'created' : 'destroyed', resource: present ?? gone(id) })
    },
  }
  return Promise.resolve({ state, storm: (id, changes) => storm(store, id, changes), close: async () => {} })
}

const gone = (id: string) => ({ metadata: { id } }) as Resource<Spec>

async function* begun(
  events: AsyncGenerator<StoreEvent<Spec>>,
  first: Promise<IteratorResult<StoreEvent<Spec>>>,
  opening?: Seen,
): AsyncGenerator<Seen> {
  if (opening) yield opening
  for (let next = await first; !next.done; next = await events.next()) yield next.value
}

const folder = mkdtempSync(join(tmpdir(), 'ichor-conformance-'))
afterAll(() => rmSync(folder, { recursive: true }))
let sockets = 0

/** The same through the resource API on a unix socket, with writes allowed. */
async function remote(): Promise<Opened> {
  const store = new Store()
  store.register(Kind)
  const path = join(folder, `${++sockets}.sock`)
  const server = await serveUnix({ path }, { methods: stateMethods(() => undefined, 'anyone', unfilteredWrites), store, log: silent })
  const channel = connect({ unix: path })
  return {
    state: stateOver(channel),
    storm: (id, changes) => storm(store, id, changes),
    close: async () => {
      channel.close()
      await server.close(0)
    },
  }
}

const { EventType, LabelTerm } = enums.resource
const operations = {
  exists: LabelTerm.Operation.EXISTS,
  equal: LabelTerm.Operation.EQUAL,
  in: LabelTerm.Operation.IN,
  lt: LabelTerm.Operation.LT,
  lte: LabelTerm.Operation.LTE,
  'lt-numeric': LabelTerm.Operation.LT_NUMERIC,
  'lte-numeric': LabelTerm.Operation.LTE_NUMERIC,
}
const labelQuery = (labels: Watching['labels'] = []) =>
  labels.map((terms) => ({
    terms: terms.map(({ key, op, values = [], invert = false }) => ({ key, op: operations[op], value: values, invert })),
  }))

function stateOver(channel: Channel): State {
  const read = (message: cosi.resource.Resource | undefined) => fromMessage(message!) as Resource<Spec>
  return {
    async get(id) {
      try {
        return read((await channel.unary('cosi.resource.State/Get', { ...kind, id })).resource)
      } catch (error) {
        if (error instanceof RpcError && error.status === 'NotFound') return undefined
        throw error
      }
    },
    async list({ labels, id } = {}) {
      const options = { labelQuery: labelQuery(labels), idQuery: id === undefined ? undefined : { regexp: id } }
      return (await Array.fromAsync(channel.serverStream('cosi.resource.State/List', { ...kind, options }))).map(({ resource }) =>
        read(resource),
      )
    },
    async create(id, spec, { owner = '', labels = {} } = {}) {
      const now = new Date()
      const metadata = {
        ...kind,
        id,
        version: 1,
        owner,
        phase: 'running' as const,
        labels,
        annotations: {},
        finalizers: [],
        created: now,
        updated: now,
      }
      const { resource } = await channel.unary('cosi.resource.State/Create', {
        resource: toMessage({ metadata, spec }),
        options: { owner },
      })
      return read(resource)
    },
    async update(resource, { owner = '', expectedPhase } = {}) {
      const request = { newResource: toMessage(resource), options: { owner, ...(expectedPhase && { expectedPhase }) } }
      return read((await channel.unary('cosi.resource.State/Update', request)).resource)
    },
    async destroy(id, { owner = '' } = {}) {
      await channel.unary('cosi.resource.State/Destroy', { ...kind, id, options: { owner } })
    },
    async watch({ id, bootstrap = false, aggregated = false, tail = 0, after, labels, signal }) {
      const options = {
        bootstrapContents: bootstrap,
        aggregated,
        tailEvents: tail,
        labelQuery: labelQuery(labels),
        ...(after !== undefined && { startFromBookmark: after as Uint8Array }),
      }
      const request = { ...kind, ...(id !== undefined && { id }), options, apiVersion: 1 }
      const responses = channel.serverStream('cosi.resource.State/Watch', request, { signal })
      await responses.next()
      return seen(responses)
    },
  }
}

const types: Record<number, Seen['type']> = {
  [EventType.CREATED]: 'created',
  [EventType.UPDATED]: 'updated',
  [EventType.DESTROYED]: 'destroyed',
  [EventType.BOOTSTRAPPED]: 'bootstrapped',
  [EventType.ERRORED]: 'errored',
  [EventType.NOOP]: 'noop',
}

async function* seen(responses: AsyncIterable<cosi.resource.WatchResponse>): AsyncGenerator<Seen> {
  for await (const { event } of responses)
    for (const { eventType, resource, old, bookmark } of event)
      yield {
        type: types[eventType]!,
        resource:
          eventType > EventType.DESTROYED
            ? undefined
            : resource?.spec?.protoSpec.length
              ? (fromMessage(resource) as Resource<Spec>)
              : resource && gone(resource.metadata?.id ?? ''),
        old: old && (fromMessage(old) as Resource<Spec>),
        bookmark,
      }
}

conformance('the local store', local, { times: 200 })
conformance('the store through the resource API', remote, { times: 25 })
