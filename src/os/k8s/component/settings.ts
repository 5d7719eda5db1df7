/**
 * The settings of a component (of Kubernetes, or etcd) are one section of the machine configuration. They are tried as a whole:
 * when a component does not start with a changed section, the whole previous section stays in effect.
 */

import { createHash } from 'node:crypto'
import type { Resource, SpecOf } from '../../../cosi/resource.ts'
import { isObject } from '../../../document/is-object.ts'
import { formatPath } from '../../../document/path.ts'
import { changedPlaces } from '../../config/public.ts'
import type { KubernetesConfig } from '../machine-config.ts'
import type { ComponentFallback } from '../resources/component.ts'

/** Component → path of its section in the machine configuration. */
export const sectionPaths = {
  kubelet: ['machine', 'kubelet'],
  'kube-apiserver': ['cluster', 'apiServer'],
  'kube-controller-manager': ['cluster', 'controllerManager'],
  'kube-scheduler': ['cluster', 'scheduler'],
  etcd: ['cluster', 'etcd'],
} as const

/** Keys of a section that do not affect the start of the component: an authority is rotated, not tried. */
const excluded: Partial<Record<keyof typeof sectionPaths, readonly string[]>> = { etcd: ['ca'] }

/** A component whose settings are tried before they are kept. */
export type ComponentName = keyof typeof sectionPaths

/** All of them. */
export const componentNames = Object.keys(sectionPaths) as ComponentName[]

/** The annotation of a resource or pod with the digest of the settings it was made from. */
export const settingsAnnotation = 'ichor.dev/settings'

/** The section of a component; an empty one when the configuration has none. */
export function sectionOf(component: ComponentName, config: KubernetesConfig | undefined): unknown {
  const [part, name] = sectionPaths[component]
  const section = (config?.[part] as Record<string, object | undefined> | undefined)?.[name] ?? {}
  const left = excluded[component]
  return left ? Object.fromEntries(Object.entries(section).filter(([key]) => !left.includes(key))) : section
}

/** Whether the configuration disables the component on this node. */
export function isDisabled(component: ComponentName, config: KubernetesConfig | undefined): boolean {
  const { controllerManager, scheduler } = config?.machine?.controlPlane ?? {}
  if (component === 'kube-controller-manager') return controllerManager?.disabled === true
  return component === 'kube-scheduler' && scheduler?.disabled === true
}

/** Digest of a section, independent of the order of its keys. */
export function digestOf(section: unknown): string {
  return createHash('sha256').update(canonical(section)).digest('hex').slice(0, 16)
}

/** The effective configuration of a component: with the section it last ran with if the current one was rejected. */
export function inEffect(
  component: ComponentName,
  config: KubernetesConfig | undefined,
  fallback: Resource<SpecOf<typeof ComponentFallback>> | undefined,
): KubernetesConfig | undefined {
  if (!config || !fallback) return config
  // A configuration other than the rejected one is tried, also before the fallback is withdrawn.
  if (digestOf(sectionOf(component, config)) !== fallback.spec.rejected) return config
  const [part, name] = sectionPaths[component]
  const present = (config[part] as Record<string, object | undefined> | undefined)?.[name] ?? {}
  const kept = Object.fromEntries(Object.entries(present).filter(([key]) => excluded[component]?.includes(key)))
  return { ...config, [part]: { ...config[part], [name]: { ...kept, ...(fallback.spec.section as object) } } }
}

/** The annotation with the settings of a component that a resource was made from. */
export function annotated(component: ComponentName, config: KubernetesConfig | undefined): Record<string, string> {
  return { [settingsAnnotation]: digestOf(sectionOf(component, config)) }
}

/** Paths at which two sections differ, as an operator writes them: `cluster.apiServer.extraArgs.v`. */
export function changedPaths(component: ComponentName, before: unknown, after: unknown): string[] {
  return changedPlaces(before, after, sectionPaths[component]).map(formatPath)
}

function canonical(value: unknown): string {
  return (
    JSON.stringify(value, (_, inner) =>
      isObject(inner) ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1))) : inner,
    ) ?? ''
  )
}
