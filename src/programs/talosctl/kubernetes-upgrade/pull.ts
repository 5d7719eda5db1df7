/** Pulls the images of an upgrade before anything is stopped for them. */
import { pullOn } from '../action/pull-image.ts'
import type { Cluster } from '../cluster.ts'
import { failedWith } from '../failure.ts'
import { type ImageNamespace, imageInstance, legacyImageNamespace } from '../image/instance.ts'
import type { Io } from '../io.ts'
import type { Outstanding } from './outstanding.ts'

const [listTimeout, pullTimeout] = [60_000, 30 * 60_000]

/**
 * Pulls the image of each step on its node, unless the node has it: it may have been imported where there is no registry. The
 * image of kube-proxy is pulled by the kubelets when its manifest changes.
 */
export async function pullImages(io: Io, cluster: Cluster, left: readonly Outstanding[], report: (line: string) => void): Promise<void> {
  const steps = left.map(({ step }) => step).filter(({ component }) => component !== 'kube-proxy')
  for (const [index, { node, component, running }] of steps.entries()) {
    const title = `image ${running} (${index + 1}/${steps.length})`
    const namespace = component === 'kubelet' ? 'system' : 'cri'
    if (await isPresent(cluster, node.address, namespace, running)) {
      report(`${node.name}: ${title}: there already`)
      continue
    }
    try {
      await pullOn(io, cluster, namespace, running, { node: node.address, name: `${node.name}: ${title}` })
    } catch (error) {
      if (!failedWith(error, 'Unimplemented')) throw error
      const request = { namespace: legacyImageNamespace(namespace), reference: running }
      await cluster.ask('machine.MachineService/ImagePull', request, { node: node.address, timeout: pullTimeout })
    }
    report(`${node.name}: ${title}: pulled`)
  }
}

/** Whether a node has an image. A node that cannot list its images pulls it. */
async function isPresent(cluster: Cluster, node: string, namespace: ImageNamespace, reference: string): Promise<boolean> {
  const request = { containerd: imageInstance(namespace) }
  try {
    for await (const { name } of cluster.stream('machine.ImageService/List', request, { node, timeout: listTimeout }))
      if (name === reference) return true
  } catch (error) {
    if (!failedWith(error, 'Unimplemented')) throw error
  }
  return false
}
