import type { SpecOf } from '../../../cosi/resource.ts'
import { parseMac } from '../../../wire/ip.ts'
import type { LinkValues } from '../documents/link-expression.ts'
import { linkFlagNumber, linkTypeNumber, operationalStateNumber } from '../kernel-names.ts'
import type { LinkStatus } from '../resources/link.ts'

/** Link fields available in expressions, in wire types: numbers for enums, bytes for addresses. */
export const linkValues = (spec: SpecOf<typeof LinkStatus>): LinkValues => ({
  alias: spec.alias,
  alt_names: spec.altNames,
  broadcast_addr: parseMac(spec.broadcastAddr),
  bus_path: spec.busPath,
  driver: spec.driver,
  driver_version: spec.driverVersion,
  firmware_version: spec.firmwareVersion,
  flags: linkFlagNumber(spec.flags),
  hardware_addr: parseMac(spec.hardwareAddr),
  index: spec.index,
  kind: spec.kind,
  link_index: spec.linkIndex,
  link_state: spec.linkState,
  master_index: spec.masterIndex,
  mtu: spec.mtu,
  operational_state: operationalStateNumber(spec.operationalState),
  pciid: spec.pciID,
  permanent_addr: parseMac(spec.permanentAddr),
  product: spec.product,
  product_id: spec.productID,
  queue_disc: spec.queueDisc,
  slave_kind: spec.slaveKind,
  speed_megabits: spec.speedMbit,
  type: linkTypeNumber(spec.type),
  vendor: spec.vendor,
  vendor_id: spec.vendorID,
})
