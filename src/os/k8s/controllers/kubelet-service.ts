import { type Controller, defineController, weak } from '../../../cosi/controller.ts'
import type { Machine } from '../../area.ts'
import { VolumeMountStatus } from '../../block/resources/volume-mount-status.ts'
import type { Mode } from '../../kernel.ts'
import { mountId } from '../../lifecycle/volumes.ts'
import { KubeletSecret } from '../../secrets/resources/kubelet-secret.ts'
import { KubernetesRootSecret } from '../../secrets/resources/kubernetes-root-secret.ts'
import { requestClientCertificate } from '../kubelet-bootstrap.ts'
import { bootstrapAccess, hasClientCertificate, keepClientCertificate, signClientCertificate, writeKubeletFiles } from '../kubelet-files.ts'
import { KubeletLifecycle } from '../resources/kubelet-lifecycle.ts'
import { KubeletSpec } from '../resources/kubelet-spec.ts'
import { StaticPod } from '../resources/static-pod.ts'

/** How long a node that is to join asks for its kubelet's certificate before the kubelet starts without. */
const joinPatience = 120_000

/** What is needed of the machine. */
type Parts = Pick<Machine, 'store' | 'supervisor' | 'service'> & { kernel: Pick<Machine['kernel'], 'files'> & { mode?: Mode } }

/** Starts the kubelet once it is known how, and anew when that changes. */
export function startKubelet({ kernel: { files, mode }, store, supervisor, service }: Parts): Controller {
  let started = ''
  let asked = false
  return defineController({
    name: 'k8s.KubeletServiceController',
    inputs: {
      specs: weak(KubeletSpec, { id: 'kubelet' }),
      secrets: weak(KubeletSecret, { id: 'kubelet' }),
      roots: weak(KubernetesRootSecret, { id: 'k8s' }),
      pods: weak(StaticPod),
      disk: weak(VolumeMountStatus, { id: mountId('/etc/kubernetes') }),
    },
    outputs: {},
    async reconcile({ specs, secrets, roots, pods, disk, log, now, background }) {
      // A machine of its own can write there only once its disk is mounted.
      if (mode === 'metal' && !disk.get(mountId('/etc/kubernetes'))) return
      const spec = specs.get('kubelet')?.spec
      const secret = secrets.get('kubelet')?.spec
      const access = secret && bootstrapAccess(secret)
      if (!spec || !access) return
      const nodename = spec.expectedNodename
      const root = roots.get('k8s')?.spec
      const registers = spec.args?.some((argument) => argument.startsWith('--kubeconfig=')) ?? false
      await writeKubeletFiles(files, spec, access)
      if (registers && !(await hasClientCertificate(files, nodename, now()))) {
        if (root?.issuingCA?.key && nodename) await keepClientCertificate(files, signClientCertificate(root, nodename, now()), now())
        // Pods of the configuration do not wait for a cluster that may be away.
        else if (nodename && !asked && pods.list().length === 0) {
          background('join', async (signal, wake, tell) => {
            try {
              const pair = await requestClientCertificate(access, nodename, { signal, patience: joinPatience, tell })
              await keepClientCertificate(files, pair, now())
            } catch (error) {
              if (signal.aborted) throw error
              log.warn('no certificate for the kubelet yet, it will ask by itself', { error })
            }
            asked = true
            wake()
          })
          return
        }
      }
      const wanted = Bun.hash(JSON.stringify([spec, access])).toString(36)
      if (started === wanted) return
      if (started) {
        log.info('starting the kubelet anew, what it is started with has changed')
        await supervisor.restart('kubelet')
      } else {
        supervisor.load(service('kubelet'))
        supervisor.start('kubelet')
        store.put(KubeletLifecycle, 'kubelet', {})
      }
      started = wanted
    },
  })
}
