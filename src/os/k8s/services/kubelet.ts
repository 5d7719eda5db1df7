import type { SpecOf } from '../../../cosi/resource.ts'
import type { SpecMount } from '../../../supervise/containerd/spec.ts'
import type { ServiceDefinition, StoreView } from '../../../supervise/definition.ts'
import { httpProbe } from '../../../supervise/probe.ts'
import type { Machine } from '../../area.ts'
import { criDaemon } from '../../cri/daemons.ts'
import { ensureImage } from '../../cri/ensure-image.ts'
import { fullReference, ownImagesOf } from '../../cri/image-table.ts'
import { bindMount, serviceContainer } from '../../cri/service-container.ts'
import type { Kernel } from '../../kernel.ts'
import { networkConditions, timeConditions } from '../../network/conditions.ts'
import { operatorEnvironment } from '../../runtime/service-environment.ts'
import { KubeletSpec } from '../resources/kubelet-spec.ts'

type Spec = SpecOf<typeof KubeletSpec>

function wait(store: StoreView): string[] {
  const spec = store.get(KubeletSpec, 'kubelet') ? [] : ['kubelet spec']
  return [...timeConditions(store), ...networkConditions(store, ['address', 'hostname', 'etcfiles']), ...spec]
}

/** Folders that the kubelet and the pods' containers see alike: a mount made on one side appears on the other. */
const sharedFolders = [
  { path: '/etc/kubernetes', mode: 0o700 },
  { path: '/usr/libexec/kubernetes', mode: 0o755 },
  { path: '/var/lib/containerd', mode: 0o000 },
  { path: '/var/lib/kubelet', mode: 0o700 },
  { path: '/var/log/containers', mode: 0o755 },
  { path: '/var/log/pods', mode: 0o755 },
  { path: '/var/mnt', mode: 0o755 },
  { path: '/run', mode: 0o755 },
]

/** Files of the node that the kubelet reads, where there are any. */
const readFiles = ['/etc/hosts', '/etc/machine-id', '/etc/os-release', '/etc/resolv.conf', '/lib/modules', '/system/resolved']

/** Keeps the node's part of Kubernetes: pods, volumes, the node's own record. */
export const kubeletService = (machine: Machine): ServiceDefinition => {
  const { store, kernel } = machine
  const specNow = (): Spec => store.get(KubeletSpec, 'kubelet')!.spec
  return {
    id: 'kubelet',
    dependsOn: ['cri', 'registryd'],
    wait,
    async prepare(life) {
      for (const { path, mode } of sharedFolders) kernel.files.mkdirAll(path, { mode })
      await ensureImage(kernel, specNow().image, life)
      // What static pods are made of is there before the kubelet could think of pulling it.
      await ownImagesOf(kernel).provided()
    },
    runner: serviceContainer(
      machine,
      criDaemon,
      () => ({ image: fullReference(specNow().image) }),
      (_life, image) => ({
        args: [...(image?.entrypoint.length ? image.entrypoint : ['/usr/local/bin/kubelet']), ...(specNow().args ?? [])],
        env: [...(image?.env ?? []), ...operatorEnvironment(store)],
        privileged: true,
        capabilities: kernel.capabilities.boundingSet().map((name) => `CAP_${name.toUpperCase()}`),
        hostPid: true,
        hostIpc: true,
        hostCgroup: true,
        rootPropagation: 'shared',
        mounts: kubeletMounts(kernel, specNow()),
      }),
    ),
    health: { check: httpProbe('http://127.0.0.1:10248/healthz'), initialDelay: 2000 },
    restart: 'always',
    oom: -450,
    cgroup: '/podruntime/kubelet',
    operator: ['start', 'stop', 'restart'],
  }
}

function kubeletMounts({ files }: Kernel, { extraMounts = [] }: Spec): SpecMount[] {
  return [
    bindMount('/dev', { writable: true }),
    bindMount('/sys'),
    bindMount('/sys/fs/cgroup', { writable: true, options: ['rshared'] }),
    ...readFiles.filter(files.exists).map((path) => bindMount(path)),
    ...sharedFolders.map(({ path }) => bindMount(path, { writable: true, options: ['rshared'] })),
    ...extraMounts.map(({ destination, type, source, options }) => ({ destination, type, source, options })),
  ]
}
