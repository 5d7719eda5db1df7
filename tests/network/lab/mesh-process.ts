/**
 * A node of a mesh in the namespace that this program is started in; the argument is a MeshNode as JSON. A line of JSON for each change
 * of its peers: by name, the state and the endpoint.
 */
import { createLogger } from '../../../src/cosi/log.ts'
import { KubeSpanPeerStatus } from '../../../src/os/kubespan/resources/kube-span-peer.ts'
import { hostKernel } from './host-kernel.ts'
import { type MeshNode, startMeshNode } from './mesh-node.ts'

const node: MeshNode = JSON.parse(process.argv[2] ?? '')
const write = (entry: object) => console.error(JSON.stringify(entry))
const store = startMeshNode(hostKernel(node.state, createLogger(write)), node, write)
let printed = ''
for (;;) {
  const peers = store.list(KubeSpanPeerStatus).map(({ spec }) => [spec.label, { state: spec.state, endpoint: spec.endpoint }])
  const line = JSON.stringify(Object.fromEntries(peers))
  if (line !== printed) console.log(line)
  printed = line
  await Bun.sleep(50)
}
