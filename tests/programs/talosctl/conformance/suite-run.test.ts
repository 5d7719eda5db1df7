import { describe, expect, test } from 'bun:test'
import { core, type KubeClient, type LogQuery } from '../../../../src/kube/client.ts'
import { KubeError } from '../../../../src/kube/errors.ts'
import type { KubeObject } from '../../../../src/kube/object.ts'
import { SuiteRun } from '../../../../src/programs/talosctl/conformance/suite-run.ts'
import { textIo } from '../text-io.ts'

const pass = { focus: 'DNS', skip: '', procs: 4 }
const images = { suite: 'suite:1', shell: 'shell:1' }
const missing = () => new KubeError(404, 'NotFound', 'not found')

type State = { waiting?: { message: string }; running?: object; terminated?: { exitCode: number } }

/** A cluster whose pod goes through these states of the suite; each connection to its log gives the next text, or breaks off. */
function cluster({ states, logs }: { states: State[]; logs: (string | KubeError)[] }) {
  const objects = new Map<string, KubeObject>()
  const followed: LogQuery[] = []
  let at = 0
  const keyOf = (kind: string, name = '') => `${kind}/${name}`
  const client = {
    kind: async (apiVersion: string, kind: string) => ({ apiVersion, kind, plural: '', namespaced: false }),
    create: async (_kind: unknown, object: KubeObject) => {
      objects.set(keyOf(object.kind, object.metadata.name), object)
      return object
    },
    get: async ({ kind }: { kind: string }, name: string) => {
      const found = objects.get(keyOf(kind, name))
      if (!found) throw missing()
      if (kind !== core.pod.kind) return found
      const state = states[Math.min(at++, states.length - 1)]
      const containerStatuses = ['conformance-container', 'output-container'].map((container) => ({ name: container, state }))
      return { ...found, status: { phase: 'Running', containerStatuses } }
    },
    delete: async ({ kind }: { kind: string }, name: string) => {
      if (!objects.delete(keyOf(kind, name))) throw missing()
      if (kind === 'Namespace') objects.delete(keyOf('Pod', 'e2e-conformance-test'))
    },
    async *log(_pod: string, _namespace: string, query: LogQuery): AsyncGenerator<Uint8Array, void> {
      if (!query.follow) {
        yield Buffer.from(Buffer.from('the archive').toString('base64'))
        return
      }
      followed.push(query)
      const next = logs.shift() ?? ''
      if (next instanceof KubeError) throw next
      yield Buffer.from(next)
    },
  }
  return { client: client as unknown as KubeClient, objects, followed }
}

describe('a pass of the suite', () => {
  test('creates the pod, shows its log and returns its results, and leaves nothing', async () => {
    const { client, objects } = cluster({ states: [{ running: {} }, { terminated: { exitCode: 0 } }], logs: ['Ran 1 of 9\n'] })
    const io = textIo()
    const created: string[] = []
    const create = client.create
    client.create = async (kind, object) => {
      created.push(`${object.kind}/${object.metadata.name}`)
      return create(kind, object)
    }
    const result = await new SuiteRun(io, client, images).pass(pass)
    expect({ ...result, archive: Buffer.from(result.archive).toString() }).toEqual({ exitCode: 0, archive: 'the archive' })
    expect(io.out).toBe('Ran 1 of 9\n')
    expect(created).toEqual([
      'Namespace/conformance',
      'ServiceAccount/conformance-serviceaccount',
      'ClusterRole/conformance-serviceaccount-role',
      'ClusterRoleBinding/conformance-serviceaccount-binding',
      'Pod/e2e-conformance-test',
    ])
    expect([...objects.keys()]).toEqual([])
  })

  test('continues a log that breaks off from where it was', async () => {
    const broken = new KubeError(0, 'Unreachable', 'connection reset')
    const { client, followed } = cluster({
      states: [{ running: {} }, { running: {} }, { terminated: { exitCode: 1 } }],
      logs: [broken, 'the rest\n'],
    })
    const io = textIo()
    const { exitCode } = await new SuiteRun(io, client, images).pass(pass)
    expect(exitCode).toBe(1)
    expect(io.out).toBe('the rest\n')
    expect(io.err).toContain('the log broke off and is continued: connection reset')
    expect(followed.map(({ sinceSeconds }) => sinceSeconds !== undefined)).toEqual([false, true])
  })

  test('prints once why the suite does not start, and removes everything on Ctrl-C', async () => {
    const { client, objects } = cluster({ states: [{ waiting: { message: 'cannot pull suite:1' } }], logs: [] })
    const stop = new AbortController()
    const io = Object.assign(textIo(), { signal: stop.signal })
    let pauses = 0
    io.pause = async () => {
      if (++pauses === 3) stop.abort(new Error('interrupted'))
    }
    await expect(new SuiteRun(io, client, images).pass(pass)).rejects.toThrow('interrupted')
    expect(io.err).toBe('waiting for the suite to start: cannot pull suite:1\n')
    expect([...objects.keys()]).toEqual([])
  })
})
