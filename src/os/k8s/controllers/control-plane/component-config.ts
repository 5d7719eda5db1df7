type Component = ClusterSection['controllerManager']

/** Extra volumes of a static pod, each named after its path in the pod. */
export function volumesOf(component: Component): { name: string; hostPath: string; mountPath: string; readonly: boolean }[] {
  return (component?.extraVolumes ?? []).map(({ hostPath = '', mountPath = '', readonly = false }) => ({
    name:
      mountPath
        .replace(/\/+$/, '')
        .replace(/[^a-zA-Z0-9]+/g, '-')
        .replace(/^-+|-+$/g, '')
        .toLowerCase()
        .slice(0, 63) || 'root',
    hostPath,
    mountPath,
    readonly,
  }))
}

/** Requests and limits of a static pod as the operator gives them; an empty request selects the default. */
export function podResources(component: Component): { requests: Record<string, string>; limits: Record<string, string> } {
  const { resources } = component ?? {}
  return { requests: { cpu: '', memory: '', ...textual(resources?.requests) }, limits: textual(resources?.limits) }
}

function textual(quantities: Record<string, unknown> | undefined): Record<string, string> {
  return Object.fromEntries(Object.entries(quantities ?? {}).map(([name, quantity]) => [name, String(quantity)]))
}

import type { ClusterSection } from '../../../config/public.ts'
