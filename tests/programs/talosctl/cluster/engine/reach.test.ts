import { expect, test } from 'bun:test'
import { buildKubeconfig, formatKubeconfig, parseKubeconfig } from '../../../../../src/kube/kubeconfig.ts'
import { kubernetesAddress } from '../../../../../src/programs/node-supervisor/layout.ts'
import { machineEndpoints, publishedKubernetes, reachableKubeconfig } from '../../../../../src/programs/talosctl/cluster/engine/reach.ts'
import { planCluster } from '../../../../../src/programs/talosctl/cluster/plan/plan.ts'
import { request, role } from '../plan/request.ts'

const ports = { kubernetes: 36443, machineApi: 35000 }
const engine = { socket: '/engine.sock', mounts: [], disableIPv6: false, discoveryAddress: '10.5.0.254' }
const own = planCluster(request({ controlplanes: role(2) }), ports)
const inEngine = planCluster(request({ controlplanes: role(2) }), { ...ports, engine })

test('clients reach nodes at their addresses, and those in an engine at published ports', () => {
  expect(machineEndpoints(own)).toEqual(['10.5.0.2', '10.5.0.3'])
  expect(machineEndpoints(inEngine)).toEqual(['127.0.0.1:35000'])
  expect([publishedKubernetes(own), publishedKubernetes(inEngine)]).toEqual([undefined, 'https://127.0.0.1:36443'])
  expect([kubernetesAddress(own), kubernetesAddress(inEngine)]).toEqual(['10.5.0.1:6443', '10.5.0.2:6443'])
})

test('a kubeconfig leads to the published port, with everything else as it was', async () => {
  const text = formatKubeconfig(
    buildKubeconfig({ cluster: 'demo', user: 'admin@demo', context: 'admin@demo', server: 'https://10.5.0.2:6443', ca: 'CA', token: 't' }),
  )
  expect(await reachableKubeconfig(own, text)).toBe(text)
  const config = parseKubeconfig(await reachableKubeconfig(inEngine, text))
  expect(config.clusters.get('demo')).toMatchObject({ server: 'https://127.0.0.1:36443' })
  expect(config.contexts).toEqual(parseKubeconfig(text).contexts)
})

test('no node gets the address of the discovery server', () => {
  const small = request({ workers: role(4) })
  const reserved = { ...engine, discoveryAddress: '10.5.0.4' }
  expect(planCluster(small, { ...ports, engine: reserved }).nodes.map(({ ip }) => ip)).toEqual([
    '10.5.0.2',
    '10.5.0.3',
    '10.5.0.5',
    '10.5.0.6',
    '10.5.0.7',
  ])
})
