import { parseNetworks } from '../../../../../src/programs/talosctl/cluster/host/cidr.ts'
import type { ClusterRequest } from '../../../../../src/programs/talosctl/cluster/plan/plan.ts'

export const gib = 1024 ** 3

/** So many nodes of 2 CPUs and 2 GiB. */
export const role = (count: number) => ({ count, cpus: 2000, memory: 2 * gib })

/** A request for a control plane and a worker. */
export const request = (change: Partial<ClusterRequest> = {}): ClusterRequest => ({
  name: 'demo',
  state: '/state',
  networks: parseNetworks('10.5.0.0/24'),
  mtu: 1500,
  controlplanes: role(1),
  workers: role(1),
  kubernetesVersion: '1.36.3',
  kubernetesPort: 6443,
  exposedPorts: [{ hostPort: 8080, nodePort: 80, protocol: 'tcp' }],
  hostAddress: '127.0.0.1',
  nameservers: ['192.0.2.53'],
  forwardDns: [],
  discovery: true,
  image: '/dist/rootfs.sqsh',
  unconfigured: false,
  ...change,
})
