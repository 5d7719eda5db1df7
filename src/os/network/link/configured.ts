import type { Reader } from '../../../cosi/controller.ts'
import type { Resource, SpecOf } from '../../../cosi/resource.ts'
import { declared } from '../../config/public.ts'
import type { BootNetwork } from '../boot-network.ts'
import type { NetworkInterface } from '../documents/machine-network.ts'
import type { LinkStatus } from '../resources/link.ts'
import { type DeclaredLink, declaredLinks } from './declared.ts'
import { linkNames } from './names.ts'

/** Inputs of the controllers that read declared links. */
export interface LinkSources {
  config: Reader<string>
  devices: Reader<{ device?: unknown }>
  links: Reader<SpecOf<typeof LinkStatus>>
}

/** Links declared in the machine configuration, except those the command line ignores. */
export function configuredLinks({ config, devices, links }: LinkSources, { ignored }: BootNetwork): DeclaredLink[] {
  const resolved = devices.list().sort((a, b) => place(a) - place(b))
  const all = declaredLinks(
    // DeviceConfigController wrote these from the decoded configuration.
    resolved.map(({ spec }) => spec.device as NetworkInterface),
    declared(config.get('v1alpha1'))?.container.documents ?? [],
    linkNames(links.list()),
  )
  return all.filter(({ name }) => !ignored.has(name))
}

// Entries apply in configuration order: the id ends in the index, as in `eth0/003`.
const place = ({ metadata }: Resource) => Number(metadata.id.slice(metadata.id.lastIndexOf('/') + 1))
