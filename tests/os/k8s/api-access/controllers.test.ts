import { afterEach, expect, test } from 'bun:test'
import { systemClock } from '../../../../src/cosi/clock.ts'
import { silent } from '../../../../src/cosi/log.ts'
import { Runtime } from '../../../../src/cosi/runtime.ts'
import { Store } from '../../../../src/cosi/store.ts'
import { formatKubeconfig } from '../../../../src/kube/kubeconfig.ts'
import type { Elect } from '../../../../src/os/area.ts'
import { keepApiEndpoints } from '../../../../src/os/k8s/controllers/api-access/endpoints.ts'
import { serveServiceAccounts } from '../../../../src/os/k8s/controllers/api-access/service-accounts.ts'
import { Endpoint } from '../../../../src/os/k8s/resources/endpoint.ts'
import { KubernetesAccessConfig } from '../../../../src/os/k8s/resources/kubernetes-access-config.ts'
import { Service } from '../../../../src/os/runtime/resources/service.ts'
import { KubernetesSecret } from '../../../../src/os/secrets/resources/kubernetes-secret.ts'
import { OSRootSecret } from '../../../../src/os/secrets/resources/os-root-secret.ts'

const endings: (() => void)[] = []
afterEach(() => {
  for (const end of endings.splice(0)) end()
})

/** A control plane whose API server answers with 404, and what is requested of it. */
function controlPlane(elect: Elect) {
  const requested: string[] = []
  let arrived = Promise.withResolvers<void>()
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch(request) {
      requested.push(`${request.method} ${new URL(request.url).pathname}`)
      arrived.resolve()
      return Response.json({ kind: 'Status', reason: 'NotFound', message: 'not found' }, { status: request.method === 'POST' ? 200 : 404 })
    },
  })
  const store = new Store()
  const runtime = new Runtime(store, { log: silent, firstPause: 1 })
  runtime.register(serveServiceAccounts({ elect, clock: systemClock }), keepApiEndpoints({ clock: systemClock }))
  const base64 = (text: string) => Buffer.from(text).toString('base64')
  const localhostAdminKubeconfig = formatKubeconfig({
    clusters: new Map([['local', { server: `http://127.0.0.1:${server.port}`, 'certificate-authority-data': base64('ca') }]]),
    users: new Map([['admin', {}]]),
    contexts: new Map([['admin', { cluster: 'local', user: 'admin' }]]),
    ...{ currentContext: 'admin', rest: {} },
  })
  store.put(KubernetesSecret, 'k8s-certs', {
    ...{ schedulerKubeconfig: '', controllerManagerKubeconfig: '', adminKubeconfig: '' },
    localhostAdminKubeconfig,
  })
  store.put(OSRootSecret, 'os', { issuingCA: { crt: 'YQ==', key: 'Yg==' }, certSANIPs: [], certSANDNSNames: [], token: '' })
  store.put(Service, 'etcd', { running: true, healthy: true, unknown: false })
  runtime.start()
  endings.push(
    () => runtime.stop(),
    () => void server.stop(true),
  )
  return {
    ...{ requested, runtime, store },
    allow: (enabled: boolean) =>
      store.put(KubernetesAccessConfig, 'config', { enabled, allowedAPIRoles: ['os:reader'], allowedKubernetesNamespaces: ['tools'] }),
    async request() {
      await arrived.promise
      arrived = Promise.withResolvers()
    },
  }
}

test('accounts are served by the elected control plane, as long as the configuration allows it', async () => {
  const elected: AbortSignal[] = []
  const names: string[] = []
  const elect: Elect = async (name, act, signal) => {
    names.push(name)
    elected.push(signal)
    await act(signal)
  }
  const { allow, request, requested, runtime } = controlPlane(elect)
  await runtime.settled()
  expect(names).toEqual([])
  allow(true)
  await runtime.settled()
  expect(names).toEqual(['talos:v1:serviceAccountCRDController'])
  await request()
  expect(requested).toEqual(['GET /apis/talos.dev/v1alpha1/serviceaccounts'])
  allow(false)
  await runtime.settled()
  expect(elected.map(({ aborted }) => aborted)).toEqual([true])
})

test('a control plane that loses the election stands for it again', async () => {
  const lost = new AbortController()
  const again = Promise.withResolvers<void>()
  let elections = 0
  const elect: Elect = async (_, act, signal) => {
    if (++elections === 2) return again.resolve()
    const acting = act(AbortSignal.any([signal, lost.signal]))
    lost.abort(new Error('the lease has ended'))
    await acting
  }
  const { allow, runtime } = controlPlane(elect)
  allow(true)
  await runtime.settled()
  await again.promise
})

test('the service leads to the API servers as soon as they are known', async () => {
  const { allow, request, requested, runtime, store } = controlPlane(() => new Promise(() => {}))
  allow(true)
  await runtime.settled()
  expect(requested).toEqual([])
  store.put(Endpoint, 'kube-apiserver', { addresses: ['10.0.0.2'], hosts: [] })
  await runtime.settled()
  await request()
  expect(requested[0]).toBe('DELETE /api/v1/namespaces/default/endpoints/talos')
})
