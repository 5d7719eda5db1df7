import type { Resource, SpecOf } from '../../cosi/resource.ts'
import type { DeclaredLink } from './link/declared.ts'
import type { LinkStatus } from './resources/link.ts'

/** Network settings from the kernel command line. */
export interface BootNetwork {
  readonly hostname?: string
  readonly nameServers: readonly string[]
  readonly timeServers: readonly string[]
  /** Links (or aliases) to which no configuration is applied. */
  readonly ignored: ReadonlySet<string>
  /** Declared links. An entry without a device applies to the first of the `present` links. */
  links(present: readonly Resource<SpecOf<typeof LinkStatus>>[]): DeclaredLink[]
}

/** A command line without network settings, as in a container. */
export const silentBoot: BootNetwork = { nameServers: [], timeServers: [], ignored: new Set(), links: () => [] }
