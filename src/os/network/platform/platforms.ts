import type { Platform } from './platform.ts'
import { aws } from './providers/aws.ts'
import { azure } from './providers/azure.ts'
import { digitalOcean } from './providers/digital-ocean.ts'
import { equinixMetal } from './providers/equinix-metal.ts'
import { gcp } from './providers/gcp.ts'
import { hcloud } from './providers/hcloud.ts'
import { nocloud } from './providers/nocloud-source.ts'
import { opennebula } from './providers/opennebula.ts'
import { openstack } from './providers/openstack.ts'
import { oracle } from './providers/oracle.ts'
import { akamai, cloudstack, exoscale } from './providers/plain.ts'
import { scaleway } from './providers/scaleway.ts'
import { upcloud } from './providers/upcloud.ts'
import { vmware } from './providers/vmware.ts'
import { vultr } from './providers/vultr.ts'

/** Platforms by their `talos.platform` name. `metal` and `container` have no metadata service. */
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
