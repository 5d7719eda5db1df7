import { Affiliate } from './resources/affiliate.ts'
import { DiscoveryConfig } from './resources/discovery-config.ts'
import { Identity } from './resources/identity.ts'
import { Info } from './resources/info.ts'
import { Member } from './resources/member.ts'

/** The kinds of resources of this area. */
export const resources = [Affiliate, DiscoveryConfig, Identity, Info, Member]
