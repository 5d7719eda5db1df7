/** Upgrades the Kubernetes of a running cluster: component by component, node by node, each healthy before the next. */
import { expect } from 'bun:test'
import { kubernetesImages } from '../../src/os/config/generate/versions.ts'
import { eventually, succeeded, type TestCluster } from '../cluster/cluster.ts'

interface Pod {
  metadata: { name: string }
  spec: { containers: { image: string }[] }
  status: { conditions?: { type: string; status: string }[] }
}

const components = { apiServer: 'kube-apiserver', controllerManager: 'kube-controller-manager', scheduler: 'kube-scheduler' } as const

/** To a version, as in `1.36.3`. */
export async function upgradeKubernetes(cluster: TestCluster, version: string): Promise<void> {
  const images = kubernetesImages(version)
  const nodes = cluster.nodes()
  const controlPlanes = nodes.filter(({ role }) => role === 'controlplane')
  const patch = async (ip: string, change: object) =>
    succeeded(await cluster.talosctl('-n', ip, 'patch', 'machineconfig', '--mode', 'no-reboot', '--patch', JSON.stringify(change)))
  const object = async <T>(...args: string[]) => JSON.parse(succeeded(await cluster.kubectl([...args, '-o', 'json'])).stdout) as T

  for (const [section, component] of Object.entries(components) as [keyof typeof components, string][]) {
    for (const { ip, name } of controlPlanes) {
      await patch(ip, { cluster: { [section]: { image: images[section] } } })
      await eventually(async () => {
        const pod = await object<Pod>('get', 'pod', '-n', 'kube-system', `${component}-${name}`)
        expect(pod.spec.containers[0]?.image).toBe(images[section])
        expect(pod.status.conditions?.find(({ type }) => type === 'Ready')?.status).toBe('True')
      }, 180)
    }
  }
  for (const { ip } of controlPlanes) await patch(ip, { cluster: { proxy: { image: images.proxy } } })
  succeeded(await cluster.kubectl(['-n', 'kube-system', 'set', 'image', 'daemonset/kube-proxy', `kube-proxy=${images.proxy}`]))
  for (const { ip, name } of [...controlPlanes, ...nodes.filter((node) => !controlPlanes.includes(node))]) {
    await patch(ip, { machine: { kubelet: { image: images.kubelet } } })
    await eventually(async () => {
      const node = await object<{ status: { nodeInfo: { kubeletVersion: string }; conditions: { type: string; status: string }[] } }>(
        'get',
        'node',
        name,
      )
      expect(node.status.nodeInfo.kubeletVersion).toBe(`v${version}`)
      expect(node.status.conditions.find(({ type }) => type === 'Ready')?.status).toBe('True')
    }, 180)
  }
  succeeded(await cluster.kubectl(['-n', 'kube-system', 'rollout', 'status', 'daemonset/kube-proxy', '--timeout', '3m']))
}
