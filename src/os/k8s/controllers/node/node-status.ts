import { type Controller, defineController, exclusive, weak } from '../../../../cosi/controller.ts'
import type { SpecOf } from '../../../../cosi/resource.ts'
import { kubeClient } from '../../../../kube/client.ts'
import type { KubeObject } from '../../../../kube/object.ts'
import { isReady } from '../../../../kube/pod.ts'
import { contacts } from '../../../contacts.ts'
import { type KubeletFileSystem, kubeletAccess } from '../../kubelet/files.ts'
import { watchNode } from '../../node/watch.ts'
import { KubeletKubeconfig } from '../../resources/kubelet.ts'
import { NodeStatus } from '../../resources/node.ts'
import { Nodename } from '../../resources/nodename.ts'

/** This node as Kubernetes reports it. */
export function observeNode({ files }: { files: Pick<KubeletFileSystem, 'readTextIfThere'> }): Controller {
  let seen: KubeObject | undefined
  return defineController({
    name: 'k8s.NodeStatusController',
    contacts: contacts.controlPlane,
    inputs: { nodename: weak(Nodename, { id: 'nodename' }), kubeconfig: weak(KubeletKubeconfig, { id: 'kubelet' }) },
    outputs: { status: exclusive(NodeStatus) },
    reconcile({ nodename, kubeconfig, status, background }) {
      const name = nodename.get('nodename')?.spec
      const hash = kubeconfig.get('kubelet')?.spec.hash
      const access = kubeletAccess(files)
      if (!name || name.skipNodeRegistration || !hash || !access) {
        seen = undefined
        return
      }
      background({ name: `watch node ${name.nodename}`, of: hash }, async (signal, wake, report) => {
        const client = kubeClient(access)
        const changed = (node: KubeObject | undefined) => {
          seen = node
          wake()
        }
        await watchNode(client, name.nodename, changed, signal, report).finally(() => client.close())
      })
      if (seen?.metadata.name === name.nodename) status.put(name.nodename, nodeStatusOf(seen))
    },
  })
}

/** The published part of a Node: without its heartbeats. */
export function nodeStatusOf(node: KubeObject): SpecOf<typeof NodeStatus> {
  const { podCIDRs = [], unschedulable = false } = (node.spec ?? {}) as { podCIDRs?: string[]; unschedulable?: boolean }
  return {
    nodename: node.metadata.name ?? '',
    nodeReady: isReady(node.status),
    unschedulable,
    labels: node.metadata.labels ?? {},
    annotations: node.metadata.annotations ?? {},
    podCIDRs,
  }
}
