import { expect, test } from 'bun:test'
import type { ClusterRecord } from '../../../../src/programs/node-supervisor/layout.ts'
import { closing } from '../../../../src/programs/talosctl/cluster/closing.ts'
import type { Io } from '../../../../src/programs/talosctl/io.ts'

function printed(kubeconfig: boolean): string {
  let text = ''
  const io = { stderr: { write: (more: string) => (text += more) } } as unknown as Io
  const record = {
    name: 'c1',
    nodes: [{ ip: '10.5.0.2' }],
    network: { gateway: '10.5.0.1' },
    kubernetes: { port: 6443, hostPort: 1 },
    machineApi: { hostPort: 2 },
  } as unknown as ClusterRecord
  closing(io, record, { kubeconfig })
  return text
}

test('kubectl is proposed when its configuration leads to the cluster, and only then', () => {
  expect(printed(true)).toContain('kubectl get nodes')
  expect(printed(false)).not.toContain('kubectl')
  expect(printed(false)).toContain('cluster show --name c1')
})
