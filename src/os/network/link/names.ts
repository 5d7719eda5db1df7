import type { Resource, SpecOf } from '../../../cosi/resource.ts'
import type { BootNetwork } from '../boot-network.ts'
import type { NetworkInterface } from '../documents/machine-network.ts'
import type { LinkStatus } from '../resources/link.ts'

type Status = Resource<SpecOf<typeof LinkStatus>>

/** A physical network interface: not a bond, VLAN, bridge or another virtual link. */
export const isPhysical = ({ type, kind }: SpecOf<typeof LinkStatus>): boolean => type === 'ether' && kind === ''

/** Resolves a link's name, alias or alternative name to its name. An unknown name is returned unchanged. */
export function linkNames(links: readonly Status[]): (name: string) => string {
  const others = new Map<string, string>()
  for (const { metadata, spec } of links)
    for (const name of [spec.alias ?? '', ...(spec.altNames ?? [])]) if (name !== '' && !others.has(name)) others.set(name, metadata.id)
  const own = new Set(links.map(({ metadata }) => metadata.id))
  return (name) => (own.has(name) ? name : (others.get(name) ?? name))
}

/** A selector of links by their properties. */
export type DeviceSelector = NonNullable<NetworkInterface['deviceSelector']>

/** Names of the links that satisfy every condition of a selector, in kernel order. Strings may contain `*` and `?`. */
export function selectedLinks(selector: DeviceSelector, links: readonly Status[]): string[] {
  const { physical, ...texts } = selector
  const patterns = Object.entries(texts).flatMap(([key, text]) =>
    text ? [[key as keyof typeof texts, new Bun.Glob(lower(text))] as const] : [],
  )
  if (patterns.length === 0 && physical === undefined) return []
  return links
    .filter(({ spec }) => {
      if (physical !== undefined && isPhysical(spec) !== physical) return false
      return patterns.every(([key, glob]) => glob.match(lower(spec[key] ?? '')))
    })
    .sort((a, b) => a.spec.index - b.spec.index)
    .map(({ metadata }) => metadata.id)
}

const lower = (text: string) => text.toLowerCase()

/** The physical links that are not ignored. */
export const physicalLinks = (present: readonly Status[], { ignored }: BootNetwork): string[] =>
  present
    .filter(({ metadata, spec }) => isPhysical(spec) && !ignored.has(metadata.id) && !(spec.alias && ignored.has(spec.alias)))
    .map(({ metadata }) => metadata.id)
