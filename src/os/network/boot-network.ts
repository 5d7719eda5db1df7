import type { Resource, SpecOf } from '../../cosi/resource.ts'
import type { DeclaredLink } from './link/declared.ts'
import type { LinkStatus } from './resources/link.ts'

/** What the kernel's command line says of the network. */
export interface BootNetwork {
  readonly hostname?: string
  readonly nameServers: readonly string[]
  readonly timeServers: readonly string[]
  /** Links (or aliases) that no configuration is applied to. */
  readonly ignored: ReadonlySet<string>
  /** The links it speaks of, those it leaves open told by what is there. */
  links(present: readonly Resource<SpecOf<typeof LinkStatus>>[]): DeclaredLink[]
}

/** A command line that says nothing, as in a container. */
export const silentBoot: BootNetwork = { nameServers: [], timeServers: [], ignored: new Set(), links: () => [] }
