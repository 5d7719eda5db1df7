import { type Controller, defineController, weak } from '../../../cosi/controller.ts'
import { listImages, removeImage } from '../../../supervise/containerd/images.ts'
import { EtcdSpec } from '../../etcd/resources/etcd-spec.ts'
import { EtcdStart } from '../../etcd/resources/etcd-start.ts'
import { KubeletSpec } from '../../k8s/resources/kubelet.ts'
import { Service } from '../../runtime/resources/service.ts'
import { criDaemon } from '../daemons.ts'
import { fullReference } from '../image-table.ts'

const interval = 15 * 60_000
const grace = 4 * 3600_000

/** Removes images of the system's services that none has used for some hours: those of earlier versions. */
export const collectImages = (): Controller => {
  const unusedSince = new Map<string, number>()
  return defineController({
    name: 'cri.criImageGCController',
    inputs: {
      cri: weak(Service, { id: 'cri' }),
      kubelet: weak(KubeletSpec, { id: 'kubelet' }),
      etcd: weak(EtcdSpec, { id: 'etcd' }),
      started: weak(EtcdStart, { id: 'etcd' }),
    },
    outputs: {},
    async reconcile({ cri, kubelet, etcd, started, clock, wakeIn, log }) {
      wakeIn(interval)
      if (!cri.get('cri')?.spec.healthy) return
      // etcd uses another image only after its next start, and may have to return to the current one.
      const named = [kubelet.get('kubelet')?.spec.image, etcd.get('etcd')?.spec.image, started.get('etcd')?.spec.image]
      const used = named.flatMap((image) => (image ? [fullReference(image)] : []))
      // Without a kubelet it is too early to know which images are used.
      if (used.length === 0) return
      const channel = criDaemon.in('system')
      const time = clock.elapsed()
      for (const { name } of await listImages(channel)) {
        if (used.includes(name)) unusedSince.delete(name)
        else if (time - (unusedSince.get(name) ?? time) < grace) unusedSince.set(name, unusedSince.get(name) ?? time)
        else {
          await removeImage(channel, name)
          unusedSince.delete(name)
          log.info('removed image', { image: name })
        }
      }
    },
  })
}
