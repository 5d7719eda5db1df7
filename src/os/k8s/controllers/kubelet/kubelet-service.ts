import { type Controller, defineController, shared, weak } from '../../../../cosi/controller.ts'
import type { SpecOf } from '../../../../cosi/resource.ts'
import type { ServiceEvent } from '../../../../supervise/snapshot.ts'
import type { Machine } from '../../../area.ts'
import { SwapStatus } from '../../../block/resources/swap-status.ts'
import { mountId, VolumeMountStatus } from '../../../block/resources/volume-mount.ts'
import { contacts } from '../../../contacts.ts'
import { certificateBundle, EtcFileStatus } from '../../../files/resources/etc-file.ts'
import type { Mode } from '../../../kernel.ts'
import { Environment } from '../../../runtime/resources/environment.ts'
import { KubeletSecret } from '../../../secrets/resources/kubelet-secret.ts'
import { KubernetesRootSecret } from '../../../secrets/resources/kubernetes-root-secret.ts'
import { type AwaitedImage, awaitedImage, type PullImage, pullRepeatedly } from '../../component/awaited-image.ts'
import { kubeletRun } from '../../component/kubelet-run.ts'
import { settingsAnnotation } from '../../component/settings.ts'
import { ClientCertificate } from '../../kubelet/client-certificate.ts'
import { bootstrapAccess, writeKubeletFiles } from '../../kubelet/files.ts'
import { ComponentStatus } from '../../resources/component.ts'
import { KubeletConfig, KubeletLifecycle, KubeletSpec } from '../../resources/kubelet.ts'
import { StaticPod } from '../../resources/static-pod.ts'

/** How often the kubelet's certificate is compared with the authorities in force. */
const checkPeriod = 60_000

const inputs = {
  specs: weak(KubeletSpec, { id: 'kubelet' }),
  config: weak(KubeletConfig, { id: 'kubelet' }),
  secrets: weak(KubeletSecret, { id: 'kubelet' }),
  roots: weak(KubernetesRootSecret, { id: 'k8s' }),
  pods: weak(StaticPod),
  disk: weak(VolumeMountStatus, { id: mountId('/etc/kubernetes') }),
  bundle: weak(EtcFileStatus, { id: certificateBundle }),
  environment: weak(Environment, { id: 'machined' }),
  swaps: weak(SwapStatus),
}

/** What the controller uses of the machine. */
type Dependencies = Pick<Machine, 'store' | 'supervisor' | 'service'> & { kernel: Pick<Machine['kernel'], 'files'> & { mode?: Mode } }

/** What the kubelet was last started with, and the newest event of its service before that. */
interface Started {
  /** Digest of everything that restarts it when it changes, and of its spec alone. */
  readonly key: string
  readonly spec: string
  readonly image: string
  readonly settings: string
  readonly after?: ServiceEvent | undefined
}

/** Whether pods may swap. The kubelet measures the swap areas once, when it starts: what is added later no pod would get. */
function usesSwap({ config }: SpecOf<typeof KubeletSpec>): boolean {
  const { memorySwap } = config
  return typeof memorySwap === 'object' && memorySwap !== null && 'swapBehavior' in memorySwap && memorySwap.swapBehavior === 'LimitedSwap'
}

/** Starts the kubelet once its spec is known, and restarts it on changes. The running one is stopped only once the next one can start. */
export function startKubelet({ kernel: { files, mode }, store, supervisor, service }: Dependencies, pull: PullImage): Controller {
  let started: Started | undefined
  let awaited: AwaitedImage | undefined
  const certificate = new ClientCertificate(files)
  return defineController({
    name: 'k8s.KubeletServiceController',
    contacts: contacts.controlPlane,
    starts: ['kubelet'],
    inputs,
    outputs: { status: shared(ComponentStatus) },
    start({ wake, signal }) {
      // A kubelet that cannot be started has no resource that would wake this controller.
      const stop = supervisor.subscribe(({ id }) => id === 'kubelet' && wake())
      signal.addEventListener('abort', stop)
    },
    async reconcile(round) {
      const { specs, config, secrets, roots, pods, disk, bundle, environment, swaps, status, log, background, wakeIn } = round
      status.keep('kubelet')
      // On a machine of its own the folder can be written only once its disk is mounted.
      if (mode === 'metal' && !disk.get(mountId('/etc/kubernetes'))) return
      const spec = specs.get('kubelet')?.spec
      const secret = secrets.get('kubelet')?.spec
      const access = secret && bootstrapAccess(secret)
      // It reads the trusted authorities once, when it starts.
      const trust = bundle.get(certificateBundle)?.spec.specVersion
      if (!spec || !access || !trust) return
      const settings = config.get('kubelet')?.metadata.annotations[settingsAnnotation] ?? ''
      const key = Bun.hash(JSON.stringify([spec, access])).toString(36)
      if (started && started.spec !== key && started.image !== spec.image) {
        // The running kubelet stays until its successor can be started.
        awaited = awaited?.image === spec.image ? awaited : awaitedImage(spec.image)
        if (!awaited.there) {
          const image = awaited
          background(`image ${image.image}`, (signal, wake, report) => pullRepeatedly(image, pull, { signal, wake, report }))
          status.put('kubelet', { settings, ready: false, failures: image.failures, error: image.error })
          return
        }
      }
      const registers = spec.args?.some((argument) => argument.startsWith('--kubeconfig=')) ?? false
      await writeKubeletFiles(files, spec, access)
      wakeIn(checkPeriod)
      // Static pods of the configuration do not wait for a cluster that may be unavailable.
      const waits = started !== undefined || pods.list().length === 0
      const root = roots.get('k8s')?.spec
      if (!(await certificate.ensure({ access, nodename: spec.expectedNodename, root, registers, waits }, round))) return
      const swap = usesSwap(spec) ? swaps.list().map((area) => `${area.metadata.id} ${area.spec.size}`) : []
      const current = JSON.stringify([key, certificate.replaced, trust, environment.get('machined')?.spec.variables ?? [], swap])
      if (started?.key === current) started = { ...started, settings }
      else {
        const after = supervisor.get('kubelet')?.events.at(-1)
        if (started) {
          log.info('restarting the kubelet, its configuration changed')
          await supervisor.restart('kubelet')
        } else {
          supervisor.load(service('kubelet'))
          supervisor.start('kubelet')
          store.put(KubeletLifecycle, 'kubelet', {})
        }
        started = { key: current, spec: key, image: spec.image, settings, after }
      }
      awaited = undefined
      status.put('kubelet', { settings, ...(await kubeletRun(supervisor, started.after)) })
    },
  })
}
