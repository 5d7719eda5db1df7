import { type Controller, defineController, exclusive, weak } from '../../../../cosi/controller.ts'
import { mountId, VolumeMountStatus } from '../../../block/resources/volume-mount.ts'
import type { Kernel, Mode } from '../../../kernel.ts'
import { KubePrismConfig, KubePrismStatus } from '../../resources/kube-prism.ts'
import { TcpBalancer, type Upstream } from '../../tcp-balancer.ts'

/** Check intervals of the API servers in milliseconds: while one answers, and while none does. */
const calmPeriod = 20_000
const searchPeriod = 250
/** How long clients are held during the first start of a node, in milliseconds. */
const holdTime = 8000
const podsFolder = '/var/lib/kubelet/pods'

/** KubePrism: a local endpoint of the Kubernetes API on every node, independent of any single API server. */
export function runKubePrism({ files, mode }: { files: Pick<Kernel['files'], 'exists' | 'list'>; mode: Mode }): Controller {
  let balancer: TcpBalancer | undefined
  let address = ''
  let wake = () => {}
  let checked = Number.NEGATIVE_INFINITY
  let answered = false
  let isRecoveryKnown = false
  let reported: boolean | undefined
  const close = () => {
    balancer?.close()
    balancer = undefined
  }
  return defineController({
    name: 'k8s.KubePrismController',
    inputs: {
      config: weak(KubePrismConfig, { id: 'k8s-loadbalancer-config' }),
      disk: weak(VolumeMountStatus, { id: mountId('EPHEMERAL') }),
    },
    outputs: { status: exclusive(KubePrismStatus) },
    start(outside) {
      wake = outside.wake
      outside.signal.addEventListener('abort', close)
    },
    async reconcile({ config, disk, status, log, wakeIn, clock }) {
      const given = config.get('k8s-loadbalancer-config')?.spec
      const wanted = given ? `${given.host}:${given.port}` : ''
      if (wanted !== address) close()
      address = wanted
      if (!given) return
      balancer ??= new TcpBalancer({ hostname: given.host, port: given.port, onHealth: () => wake() })
      // Pods are looked for once: those of a first start appear while its clients still wait. On a machine of its own
      // they are there to be seen only once the disk is mounted, which is later than this.
      if (!isRecoveryKnown && (mode !== 'metal' || disk.get(mountId('EPHEMERAL')))) {
        isRecoveryKnown = true
        // A kubelet with pods to recover requests its Node from the API before it starts any, the API server's among them.
        answered ||= files.exists(podsFolder) && files.list(podsFolder).length > 0
      }
      balancer.setUpstreams(preferred(given.endpoints))
      if (!balancer.healthy || clock.elapsed() - checked >= calmPeriod) {
        await balancer.check()
        checked = clock.elapsed()
      }
      answered ||= balancer.healthy
      if (balancer.healthy) balancer.listen(0)
      else if (answered) balancer.refuse()
      else balancer.listen(holdTime)
      if (balancer.healthy !== reported)
        log.info(balancer.healthy ? 'KubePrism is healthy' : 'KubePrism has no healthy upstream', { address })
      reported = balancer.healthy
      status.put('k8s-loadbalancer', { host: address, healthy: balancer.healthy })
      wakeIn(balancer.healthy ? calmPeriod : searchPeriod)
    },
  })
}

/** This node's own API server first, then the others; the cluster's common endpoint is the last resort when there are others. */
export function preferred(endpoints: readonly { host: string; port: number }[]): Upstream[] {
  const common = endpoints[0]?.host === 'localhost' ? [] : endpoints.slice(0, 1)
  const direct = endpoints.slice(common.length)
  const [local, remote] = [direct.filter(({ host }) => host === 'localhost'), direct.filter(({ host }) => host !== 'localhost')]
  const seen = new Set<string>()
  return [...local, ...remote, ...common.map((endpoint) => ({ ...endpoint, lastResort: true }))]
    .map((endpoint) => ({ ...endpoint, host: endpoint.host === 'localhost' ? '127.0.0.1' : endpoint.host }))
    .filter(({ host, port }) => !seen.has(`${host}:${port}`) && seen.add(`${host}:${port}`))
}
