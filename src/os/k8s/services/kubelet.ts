import type { SpecOf } from '../../../cosi/resource.ts'
import type { ServiceDefinition, StoreView } from '../../../supervise/definition.ts'
import { httpProbe } from '../../../supervise/probe.ts'
import type { Machine } from '../../area.ts'
import { contacts } from '../../contacts.ts'
import { criDaemon, ensureImage, fullReference, operatorEnvironment, serviceContainer } from '../../cri/public.ts'
import { networkConditions, timeConditions } from '../../network/public.ts'
import { kubeletFolders, kubeletMounts } from '../kubelet/mounts.ts'
import { shutdownTime } from '../kubelet/shutdown-time.ts'
import { systemBusSocket } from '../logind/logind.ts'
import { NodeMounts } from '../node/mounts.ts'
import { KubeletSpec } from '../resources/kubelet.ts'

type Spec = SpecOf<typeof KubeletSpec>

function wait(store: StoreView): string[] {
  const spec = store.get(KubeletSpec, 'kubelet') ? [] : ['kubelet spec']
  return [...timeConditions(store), ...networkConditions(store, ['address', 'hostname', 'etcfiles']), ...spec]
}

/** The kubelet: pods, volumes, the Node's status. */
export const kubeletService = (machine: Machine): ServiceDefinition => {
  const { store, kernel, images, logind } = machine
  const specNow = (): Spec => {
    const resource = store.get(KubeletSpec, 'kubelet')
    if (!resource) throw new Error('start the kubelet: it is not configured')
    return resource.spec
  }
  const nodeMounts = new NodeMounts(kernel)
  return {
    id: 'kubelet',
    contacts: contacts.controlPlane,
    dependsOn: ['cri', 'registryd'],
    wait,
    async prepare(context) {
      for (const { path, mode } of kubeletFolders) kernel.files.mkdirAll(path, { mode })
      const { extraMounts = [] } = specNow()
      // A missing source is created as a folder.
      for (const { type, source } of extraMounts)
        if (type === 'bind' && !kernel.files.exists(source)) kernel.files.mkdirAll(source, { mode: 0o700 })
      nodeMounts.provide(kubeletMounts(kernel, extraMounts).node)
      // The kubelet looks for it once, when it starts.
      logind.listen(shutdownTime(specNow().config))
      await ensureImage(images, specNow().image, context)
      // The images of the static pods are provided before the kubelet could pull them.
      await images.provided()
    },
    runner: serviceContainer(
      machine,
      criDaemon,
      () => ({ image: fullReference(specNow().image) }),
      (_life, image) => ({
        args: [...(image?.entrypoint.length ? image.entrypoint : ['/usr/local/bin/kubelet']), ...(specNow().args ?? [])],
        // The default path is below /var/run, which not every image links to /run.
        env: [...(image?.env ?? []), `DBUS_SYSTEM_BUS_ADDRESS=unix:path=${systemBusSocket}`, ...operatorEnvironment(store)],
        privileged: true,
        capabilities: kernel.capabilities.boundingSet().map((name) => `CAP_${name.toUpperCase()}`),
        hostPid: true,
        hostIpc: true,
        hostCgroup: true,
        rootPropagation: 'shared',
        mounts: kubeletMounts(kernel, specNow().extraMounts).container,
      }),
    ),
    health: { check: httpProbe('http://127.0.0.1:10248/healthz'), initialDelay: 2000 },
    restart: 'always',
    oom: -450,
    cgroup: '/podruntime/kubelet',
    domain: 'kubelet_t',
    operator: ['start', 'stop', 'restart'],
  }
}
