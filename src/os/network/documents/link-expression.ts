/** What an expression that picks links may speak of. */
import type { SpecOf } from '../../../cosi/resource.ts'
import type { CelFunction, CelValue } from '../../../document/cel.ts'
import type { LinkStatus } from '../resources/link-status.ts'

/** A link's fields, by the names that they have on the wire. */
export function linkVariables(spec: SpecOf<typeof LinkStatus>): Record<string, CelValue> {
  return {
    alias: spec.alias ?? '',
    alt_names: spec.altNames ?? [],
    index: spec.index,
    type: spec.type,
    kind: spec.kind,
    mtu: spec.mtu,
    hardware_addr: spec.hardwareAddr,
    permanent_addr: spec.permanentAddr,
    broadcast_addr: spec.broadcastAddr,
    bus_path: spec.busPath ?? '',
    pciid: spec.pciID ?? '',
    driver: spec.driver ?? '',
    vendor_id: spec.vendorID ?? '',
    product_id: spec.productID ?? '',
    vendor: spec.vendor ?? '',
    product: spec.product ?? '',
    link_state: spec.linkState,
    speed_megabits: spec.speedMbit ?? 0,
  }
}

/** Functions for links: `mac(link.permanent_addr)` is the address as text. */
export const linkFunctions: Readonly<Record<string, CelFunction>> = { mac: (address = '') => address }
