/** The components whose images an upgrade replaces, and where a machine configuration names them. */
import type { ConfigContainer } from '../../../os/config/container.ts'
import type { UpgradedNode } from './nodes.ts'

/** The components in the order in which they are upgraded: nothing is ever newer than the API server. */
export const componentNames = ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'kube-proxy', 'kubelet'] as const

export type ComponentName = (typeof componentNames)[number]

/** What is known of a component. */
interface Component {
  /** Path of the section in the machine configuration that has the key `image`. */
  readonly section: readonly [string, string]
  /** The resource (type, namespace, id) with the settings in effect, and its key with the image. */
  readonly resource: { readonly type: string; readonly namespace: string; readonly id: string; readonly key: string }
}

const staticPod = (type: string, id: string): Component['resource'] => ({ type, namespace: 'controlplane', id, key: 'image' })

export const components: Readonly<Record<ComponentName, Component>> = {
  'kube-apiserver': {
    section: ['cluster', 'apiServer'],
    resource: staticPod('APIServerConfigs.kubernetes.talos.dev', 'kube-apiserver'),
  },
  'kube-controller-manager': {
    section: ['cluster', 'controllerManager'],
    resource: staticPod('ControllerManagerConfigs.kubernetes.talos.dev', 'kube-controller-manager'),
  },
  'kube-scheduler': {
    section: ['cluster', 'scheduler'],
    resource: staticPod('SchedulerConfigs.kubernetes.talos.dev', 'kube-scheduler'),
  },
  'kube-proxy': {
    section: ['cluster', 'proxy'],
    resource: { type: 'BootstrapManifestsConfigs.kubernetes.talos.dev', namespace: 'controlplane', id: 'manifests', key: 'proxyImage' },
  },
  kubelet: {
    section: ['machine', 'kubelet'],
    resource: { type: 'KubeletSpecs.kubernetes.talos.dev', namespace: 'k8s', id: 'kubelet', key: 'image' },
  },
}

/** Whether a node has a component. */
export function runs({ controlPlane }: Pick<UpgradedNode, 'controlPlane'>, component: ComponentName, config: ConfigContainer): boolean {
  if (component === 'kubelet') return true
  const { cluster, machine } = config.v1alpha1 ?? {}
  if (component === 'kube-proxy') return controlPlane && cluster?.proxy?.disabled !== true
  if (component === 'kube-controller-manager') return controlPlane && machine?.controlPlane?.controllerManager?.disabled !== true
  if (component === 'kube-scheduler') return controlPlane && machine?.controlPlane?.scheduler?.disabled !== true
  return controlPlane
}

/** The image that a configuration names for a component. */
export function imageIn(config: ConfigContainer, component: ComponentName): string | undefined {
  const { cluster, machine } = config.v1alpha1 ?? {}
  const sections = {
    'kube-apiserver': cluster?.apiServer,
    'kube-controller-manager': cluster?.controllerManager,
    'kube-scheduler': cluster?.scheduler,
    'kube-proxy': cluster?.proxy,
    kubelet: machine?.kubelet,
  }
  return sections[component]?.image || undefined
}

/** The configuration with another image of a component, or without one, as before it was first upgraded. */
export function withImage(config: ConfigContainer, component: ComponentName, image: string | undefined): ConfigContainer {
  const [part, section] = components[component].section
  const patch = image === undefined ? [{ op: 'remove', path: `/${part}/${section}/image` }] : { [part]: { [section]: { image } } }
  return config.patch(JSON.stringify(patch))
}
