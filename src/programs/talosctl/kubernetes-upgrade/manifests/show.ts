/** How objects and their changes are shown. */
import { stringify } from 'yaml'
import { unifiedDiff } from '../../../../document/unified-diff.ts'
import type { KubeObject } from '../../../../kube/object.ts'

/** `<apiVersion>.<Kind>/<namespace>/<name>`. */
export const subjectOf = ({ apiVersion, kind, metadata }: KubeObject): string =>
  [`${apiVersion}.${kind}`, ...(metadata.namespace ? [metadata.namespace] : []), metadata.name].join('/')

/** What the API server maintains by itself. */
const maintained = ['creationTimestamp', 'generation', 'managedFields', 'resourceVersion', 'uid']
const maintainedAnnotation = 'deprecated.daemonset.template.generation'

/** The part of an object that somebody wants it to have. */
export function desiredPart({ metadata, status: _, ...rest }: KubeObject): Record<string, unknown> {
  const kept = Object.fromEntries(Object.entries(metadata).filter(([key]) => !maintained.includes(key)))
  if (metadata.annotations?.[maintainedAnnotation] === undefined) return { ...rest, metadata: kept }
  const { [maintainedAnnotation]: _generation, ...annotations } = metadata.annotations
  return { ...rest, metadata: { ...kept, annotations } }
}

/** Whether two states of an object are the same to those who want it. */
export const isSame = (before: KubeObject, after: KubeObject): boolean => text(desiredPart(before)) === text(desiredPart(after))

/** The difference of two states; the values of a Secret are masked, and show only whether they differ. */
export function changeOf(before: KubeObject | undefined, after: KubeObject | undefined): string {
  const subject = subjectOf((after ?? before) as KubeObject)
  const [from, to] = masked(before, after)
  return unifiedDiff(before ? `a/${subject}` : '/dev/null', after ? `b/${subject}` : '/dev/null', text(from), text(to))
}

const text = (part: Record<string, unknown> | undefined): string =>
  part === undefined ? '' : stringify(part, { sortMapEntries: true, lineWidth: 0, aliasDuplicateObjects: false })

type Part = Record<string, unknown> | undefined

function masked(before: KubeObject | undefined, after: KubeObject | undefined): [Part, Part] {
  const [from, to] = [before && desiredPart(before), after && desiredPart(after)]
  if ((after ?? before)?.kind !== 'Secret') return [from, to]
  const hide = (part: Part, other: Part, mark: string): Part => {
    if (!part) return part
    const hidden = { ...part }
    for (const key of ['data', 'stringData'])
      if (part[key]) {
        const values = other?.[key] as Record<string, unknown> | undefined
        hidden[key] = Object.fromEntries(
          Object.entries(part[key] as Record<string, unknown>).map(([name, value]) => [
            name,
            values?.[name] === value ? '***' : `*** (${mark})`,
          ]),
        )
      }
    const metadata = part.metadata as { annotations?: Record<string, unknown> } | undefined
    const { 'kubectl.kubernetes.io/last-applied-configuration': applied, ...annotations } = metadata?.annotations ?? {}
    return applied === undefined ? hidden : { ...hidden, metadata: { ...metadata, annotations } }
  }
  return [hide(from, to, 'before'), hide(to, from, 'after')]
}
