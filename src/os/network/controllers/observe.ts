import { type Controller, defineController, exclusive, shared, weak } from '../../../cosi/controller.ts'
import { addressOnly } from '../../../wire/prefix.ts'
import type { Kernel } from '../../kernel.ts'
import { onChange } from '../kernel-events.ts'
import {
  addressFlagNames,
  familyName,
  linkFlagNames,
  linkTypeName,
  operationalStateName,
  routeFlagNames,
  routeProtocolName,
  routeTableName,
  routeTypeName,
  scopeName,
} from '../kernel-names.ts'
import { shownData } from '../link/data.ts'
import { hardwareOf } from '../link/hardware.ts'
import { shownWireguard } from '../link/wireguard.ts'
import { AddressStatus } from '../resources/address.ts'
import { LinkStatus } from '../resources/link.ts'
import { LinkRefresh } from '../resources/link-refresh.ts'
import { RouteStatus } from '../resources/route.ts'

/** Publishes the kernel's links. */
export const observeLinks = ({ net, files, wireguard }: Pick<Kernel, 'net' | 'files' | 'wireguard'>): Controller =>
  defineController({
    name: 'network.LinkStatusController',
    inputs: { refresh: weak(LinkRefresh) },
    outputs: { status: exclusive(LinkStatus) },
    start: onChange(net, ['links']),
    reconcile({ status }) {
      using network = net.openNetwork()
      for (const link of network.links())
        status.put(link.name, {
          ...(link.alias && { alias: link.alias }),
          ...(link.alternativeNames.length > 0 && { altNames: link.alternativeNames }),
          index: link.index,
          type: linkTypeName(link.type),
          linkIndex: link.parent ?? 0,
          flags: linkFlagNames(link.flags),
          hardwareAddr: link.hardwareAddress,
          permanentAddr: link.permanentAddress || link.hardwareAddress,
          broadcastAddr: link.broadcastAddress,
          mtu: link.mtu,
          queueDisc: link.queueDiscipline,
          ...(link.master && { masterIndex: link.master }),
          operationalState: operationalStateName(link.operationalState),
          kind: link.kind,
          slaveKind: link.slaveKind,
          linkState: link.carrier,
          ...hardwareOf(files, link),
          ...shownData(link.kind, link.data),
          ...(link.kind === 'wireguard' && { wireguard: shownWireguard(wireguard.wireguardDevice(link.index)) }),
        })
    },
  })

/** Publishes the kernel's addresses. */
export const observeAddresses = ({ net }: Pick<Kernel, 'net'>): Controller =>
  defineController({
    name: 'network.AddressStatusController',
    inputs: {},
    outputs: { status: shared(AddressStatus) },
    start: onChange(net, ['addresses', 'links']),
    reconcile({ status }) {
      using network = net.openNetwork()
      const names = new Map(network.links().map(({ index, name }) => [index, name]))
      for (const address of network.addresses()) {
        const linkName = names.get(address.link)
        if (linkName === undefined) continue // removed between the two reads; its removal triggers a reconcile
        status.put(`${linkName}/${address.address}`, {
          address: address.address,
          ...(address.local && address.local !== addressOnly(address.address) && { local: address.local }),
          ...(address.broadcast && { broadcast: address.broadcast }),
          ...(address.anycast && { anycast: address.anycast }),
          ...(address.multicast && { multicast: address.multicast }),
          linkIndex: address.link,
          linkName,
          family: familyName(address.family),
          scope: scopeName(address.scope),
          flags: addressFlagNames(address.flags),
          priority: address.priority,
        })
      }
    },
  })

/** Publishes the kernel's routes. */
export const observeRoutes = ({ net }: Pick<Kernel, 'net'>): Controller =>
  defineController({
    name: 'network.RouteStatusController',
    inputs: {},
    outputs: { status: exclusive(RouteStatus) },
    start: onChange(net, ['routes', 'links']),
    reconcile({ status }) {
      using network = net.openNetwork()
      const names = new Map(network.links().map(({ index, name }) => [index, name]))
      for (const route of network.routes()) {
        if (route.family !== 2 && route.family !== 10) continue
        const linkName = route.link === undefined ? '' : (names.get(route.link) ?? '')
        const id = [
          linkName && `${linkName}/`,
          `${familyName(route.family)}/`,
          `${route.gateway ?? ''}/${route.destination ?? ''}/${route.priority}`,
          route.table === 254 ? '' : `/${routeTableName(route.table)}`,
        ].join('')
        status.put(id, {
          family: familyName(route.family),
          dst: route.destination ?? '',
          src: route.preferredSource ?? '',
          gateway: route.gateway ?? '',
          ...(route.link !== undefined && { outLinkIndex: route.link, outLinkName: linkName }),
          table: routeTableName(route.table),
          priority: route.priority,
          scope: scopeName(route.scope),
          type: routeTypeName(route.type),
          flags: routeFlagNames(route.flags),
          protocol: routeProtocolName(route.protocol),
          ...(route.mtu && { mtu: route.mtu }),
        })
      }
    },
  })
