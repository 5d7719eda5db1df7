/**
 * The settings of a component (of Kubernetes, or etcd) are one section of the machine configuration, and those beside it that the
 * component starts with too. They are tried as a whole: when a component does not start with changed settings, all of the previous
 * ones stay in effect.
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

/** Sections that belong to the settings of a component, by a name that its own section does not have. */
const besides: Partial<Record<keyof typeof sectionPaths, Readonly<Record<string, readonly ['machine' | 'cluster', string]>>>> = {
  kubelet: { nodeTaints: ['machine', 'nodeTaints'] },
}

/** Keys of a section that do not affect the start of the component: an authority is rotated, not tried. */
const excluded: Partial<Record<keyof typeof sectionPaths, readonly string[]>> = { etcd: ['ca'] }

/** A component whose settings are tried before they are kept. */
export type ComponentName = keyof typeof sectionPaths

/** All of them. */
export const componentNames = Object.keys(sectionPaths) as ComponentName[]

/** The annotation of a resource or pod with the digest of the settings it was made from. */
export const settingsAnnotation = 'ichor.dev/settings'

/** The settings of a component, with each section beside its own under that one's name; empty when the configuration has none. */
export function sectionOf(component: ComponentName, config: KubernetesConfig | undefined): Record<string, unknown> {
  const left = excluded[component] ?? []
  const own = Object.entries(at(config, sectionPaths[component]) ?? {}).filter(([key]) => !left.includes(key))
  const others = Object.entries(besides[component] ?? {}).flatMap(([name, path]) => {
    const section = at(config, path)
    return section && Object.keys(section).length > 0 ? [[name, section] as const] : []
  })
  return Object.fromEntries([...own, ...others])
}

const at = (config: KubernetesConfig | undefined, [part, name]: readonly ['machine' | 'cluster', string]): object | undefined =>
  (config?.[part] as Record<string, object | undefined> | undefined)?.[name]

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
  const { own, others } = divided(component, fallback.spec.section)
  const kept = Object.entries(at(config, sectionPaths[component]) ?? {}).filter(([key]) => excluded[component]?.includes(key))
  const restored = withSection(config, sectionPaths[component], { ...Object.fromEntries(kept), ...own })
  return others.reduce((next, { path, section }) => withSection(next, path, section), restored)
}

function withSection(config: KubernetesConfig, [part, name]: readonly ['machine' | 'cluster', string], section: unknown): KubernetesConfig {
  return { ...config, [part]: { ...config[part], [name]: section } }
}

/** The component's own section of its settings, and those beside it. */
function divided(component: ComponentName, settings: unknown) {
  const all = isObject(settings) ? settings : {}
  const names = besides[component] ?? {}
  return {
    own: Object.fromEntries(Object.entries(all).filter(([key]) => !(key in names))),
    others: Object.entries(names).map(([name, path]) => ({ path, section: all[name] })),
  }
}

/** The annotation with the settings of a component that a resource was made from. */
export function annotated(component: ComponentName, config: KubernetesConfig | undefined): Record<string, string> {
  return { [settingsAnnotation]: digestOf(sectionOf(component, config)) }
}

/** Paths at which the settings of a component differ, as an operator writes them: `cluster.apiServer.extraArgs.v`. */
export function changedPaths(component: ComponentName, before: unknown, after: unknown): string[] {
  const [old, next] = [divided(component, before), divided(component, after)]
  const own = changedPlaces(old.own, next.own, sectionPaths[component])
  const others = old.others.flatMap(({ path, section }, index) => changedPlaces(section ?? {}, next.others[index]?.section ?? {}, path))
  return [...own, ...others].map(formatPath)
}

function canonical(value: unknown): string {
  return (
    JSON.stringify(value, (_, inner) =>
      isObject(inner) ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1))) : inner,
    ) ?? ''
  )
}
