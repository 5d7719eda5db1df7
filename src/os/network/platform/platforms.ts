import { aws } from './aws.ts'
import { azure } from './azure.ts'
import { digitalOcean } from './digital-ocean.ts'
import { equinixMetal } from './equinix-metal.ts'
import { gcp } from './gcp.ts'
import { hcloud } from './hcloud.ts'
import { nocloud } from './nocloud-source.ts'
import { opennebula } from './opennebula.ts'
import { openstack } from './openstack.ts'
import { oracle } from './oracle.ts'
import { akamai, cloudstack, exoscale } from './plain.ts'
import type { Platform } from './platform.ts'
import { scaleway } from './scaleway.ts'
import { upcloud } from './upcloud.ts'
import { vmware } from './vmware.ts'
import { vultr } from './vultr.ts'

/** Platforms by what `talos.platform` calls them; `metal` and `container` have nobody who speaks for them. */
export const platforms: Readonly<Record<string, Platform>> = {
  akamai,
  aws,
  azure,
  cloudstack,
  'digital-ocean': digitalOcean,
  equinixMetal,
  exoscale,
  gcp,
  hcloud,
  nocloud,
  opennebula,
  openstack,
  oracle,
  scaleway,
  upcloud,
  vmware,
  vultr,
}
