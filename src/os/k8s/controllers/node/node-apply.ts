import { type Controller, defineController, weak } from '../../../../cosi/controller.ts'
import { core, kubeClient } from '../../../../kube/client.ts'
import { isNotFound, KubeError } from '../../../../kube/errors.ts'
import { accessOf, parseKubeconfig } from '../../../../kube/kubeconfig.ts'
import { contacts } from '../../../contacts.ts'
import { KubernetesSecret } from '../../../secrets/resources/kubernetes-secret.ts'
import { type KubeletFileSystem, kubeletAccess } from '../../kubelet/files.ts'
import { nodePatch } from '../../node/patch.ts'
import { nodeMaySetLabel } from '../../node/restriction.ts'
import { NodeAnnotationSpec, NodeCordonedSpec, NodeLabelSpec, NodeStatus, NodeTaintSpec } from '../../resources/node.ts'
import { Nodename } from '../../resources/nodename.ts'

/** Applies the desired labels, annotations, taints and cordon to the Node. */
export function applyNode({ files }: { files: Pick<KubeletFileSystem, 'readTextIfThere'> }): Controller {
  const reported = new Map<string, string>()
  return defineController({
    name: 'k8s.NodeApplyController',
    contacts: contacts.controlPlane,
    inputs: {
      labels: weak(NodeLabelSpec),
      annotations: weak(NodeAnnotationSpec),
      taints: weak(NodeTaintSpec),
      cordons: weak(NodeCordonedSpec),
      status: weak(NodeStatus),
      nodename: weak(Nodename, { id: 'nodename' }),
      kubeconfigs: weak(KubernetesSecret, { id: 'k8s-certs' }),
    },
    outputs: {},
    async reconcile({ labels, annotations, taints, cordons, status, nodename, kubeconfigs, log, signal, wakeIn }) {
      const name = nodename.get('nodename')?.spec
      if (!name || name.skipNodeRegistration || !status.get(name.nodename)) return
      // A node may change its Node, but not give itself a role; a control plane node may do everything.
      const admin = kubeconfigs.get('k8s-certs')?.spec.localhostAdminKubeconfig
      const access = admin ? accessOf(parseKubeconfig(admin)) : kubeletAccess(files)
      if (!access) return
      const wanted = labels.list().map(({ spec }) => spec)
      const forbidden = admin ? [] : wanted.filter(({ key }) => !nodeMaySetLabel(key)).map(({ key }) => key)
      const warnOnce = (message: string, kind: string, keys: readonly string[]) => {
        if (reported.get(kind) === keys.join()) return
        reported.set(kind, keys.join())
        log.warn(message, { [kind]: keys.join(' ') })
      }
      if (forbidden.length > 0) warnOnce('a worker may not give itself these labels, set them with kubectl', 'labels', forbidden)
      const desired = {
        labels: Object.fromEntries(wanted.filter(({ key }) => !forbidden.includes(key)).map(({ key, value }) => [key, value])),
        annotations: Object.fromEntries(annotations.list().map(({ spec }) => [spec.key, spec.value])),
        taints: taints.list().map(({ spec }) => spec),
        cordoned: cordons.list().length > 0,
      }
      const client = kubeClient(access)
      try {
        const node = await client.get(core.node, name.nodename, undefined, { signal })
        let patch = nodePatch(node, desired)
        // A worker's taints are set by its kubelet, once, when it registers.
        if (!admin && patch?.spec?.taints) {
          const { taints: others, ...allowed } = desired
          const names = others.map(({ key, value, effect }) => `${key}${value ? `=${value}` : ''}:${effect}`)
          warnOnce('a worker may not change its taints, set them with kubectl', 'taints', names)
          patch = nodePatch(node, allowed)
        }
        if (!patch) return
        await client.patch(core.node, name.nodename, undefined, { type: 'application/merge-patch+json', body: patch }, { signal })
        log.info('node updated', { node: name.nodename })
      } catch (error) {
        if (isNotFound(error)) return
        // The kubelet changed the Node in between: read it again.
        if (!(error instanceof KubeError) || error.status !== 409) throw error
        wakeIn(200)
      } finally {
        client.close()
      }
    },
  })
}
