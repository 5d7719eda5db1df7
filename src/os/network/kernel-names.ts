/** Maps kernel numbers of addresses, links and routes to the names shown to users (rtnetlink(7), linux/if.h, linux/if_arp.h). */

const families: Readonly<Record<number, string>> = {
  2: 'inet4',
  10: 'inet6',
}

const scopes: Readonly<Record<number, string>> = {
  0: 'global',
  200: 'site',
  253: 'link',
  254: 'host',
  255: 'nowhere',
}

const addressFlags: Readonly<Record<number, string>> = {
  1: 'temporary',
  2: 'nodad',
  4: 'optimistic',
  8: 'dadfailed',
  16: 'homeaddress',
  32: 'deprecated',
  64: 'tentative',
  128: 'permanent',
  256: 'mngmtmpaddr',
  512: 'noprefixroute',
  1024: 'mcautojoin',
  2048: 'stableprivacy',
}

const linkFlags: Readonly<Record<number, string>> = {
  1: 'UP',
  2: 'BROADCAST',
  4: 'DEBUG',
  8: 'LOOPBACK',
  16: 'POINTTOPOINT',
  32: 'NOTRAILERS',
  64: 'RUNNING',
  128: 'NOARP',
  256: 'PROMISC',
  512: 'ALLMULTI',
  1024: 'MASTER',
  2048: 'SLAVE',
  4096: 'MULTICAST',
  8192: 'PORTSEL',
  16384: 'AUTOMEDIA',
  32768: 'DYNAMIC',
  65536: 'LOWER_UP',
  131072: 'DORMANT',
  262144: 'ECHO',
}

const linkTypes: Readonly<Record<number, string>> = {
  0: 'netrom',
  1: 'ether',
  2: 'eether',
  3: 'ax25',
  4: 'pronet',
  5: 'chaos',
  6: 'ieee802',
  7: 'arcnet',
  8: 'atalk',
  15: 'dlci',
  19: 'atm',
  23: 'metricom',
  24: 'ieee1394',
  27: 'eui64',
  32: 'infiniband',
  256: 'slip',
  257: 'cslip',
  258: 'slip6',
  259: 'cslip6',
  260: 'rsrvd',
  264: 'adapt',
  270: 'rose',
  271: 'x25',
  272: 'hwx25',
  280: 'can',
  512: 'ppp',
  513: 'cisco',
  516: 'lapb',
  517: 'ddcmp',
  518: 'rawhdlc',
  768: 'ipip',
  769: 'tunnel6',
  770: 'frad',
  771: 'skip',
  772: 'loopback',
  773: 'localtlk',
  774: 'fddi',
  775: 'bif',
  776: 'sit',
  777: 'ip/ddp',
  778: 'gre',
  779: 'pimreg',
  780: 'hippi',
  781: 'ash',
  782: 'econet',
  783: 'irda',
  784: 'fcpp',
  785: 'fcal',
  786: 'fcpl',
  787: 'fcfb_0',
  788: 'fcfb_1',
  789: 'fcfb_2',
  790: 'fcfb_3',
  791: 'fcfb_4',
  792: 'fcfb_5',
  793: 'fcfb_6',
  794: 'fcfb_7',
  795: 'fcfb_8',
  796: 'fcfb_9',
  797: 'fcfb_10',
  798: 'fcfb_11',
  799: 'fcfb_12',
  800: 'tr',
  801: 'ieee802.11',
  802: 'ieee802.11_prism',
  803: 'ieee802.11_radiotap',
  804: 'ieee802.15.4',
  805: 'ieee802.15.4_monitor',
  820: 'phonet',
  821: 'phonet_pipe',
  822: 'caif',
  823: 'ip6gre',
  824: 'netlink',
  825: '6lowpan',
  65534: 'nohdr',
  65535: 'void',
}

const operationalStates: Readonly<Record<number, string>> = {
  0: 'unknown',
  1: 'notPresent',
  2: 'down',
  3: 'lowerLayerDown',
  4: 'testing',
  5: 'dormant',
  6: 'up',
}

const routeFlags: Readonly<Record<number, string>> = {
  256: 'notify',
  512: 'cloned',
  1024: 'equalize',
  2048: 'prefix',
  4096: 'lookup_table',
  8192: 'fib_match',
  16384: 'offload',
  32768: 'trap',
}

const routeTypes: Readonly<Record<number, string>> = {
  0: 'unspec',
  1: 'unicast',
  2: 'local',
  3: 'broadcast',
  4: 'anycast',
  5: 'multicast',
  6: 'blackhole',
  7: 'unreachable',
  8: 'prohibit',
  9: 'throw',
  10: 'nat',
  11: 'xresolve',
}

const routeProtocols: Readonly<Record<number, string>> = {
  0: 'unspec',
  1: 'redirect',
  2: 'kernel',
  3: 'boot',
  4: 'static',
  9: 'ra',
  10: 'mrt',
  11: 'zebra',
  12: 'bird',
  13: 'dnrouted',
  14: 'xorp',
  15: 'ntk',
  16: 'dhcp',
  17: 'mrtd',
  18: 'keepalived',
  42: 'babel',
  99: 'openr',
  186: 'bgp',
  187: 'isis',
  188: 'ospf',
  189: 'rip',
  192: 'eigrp',
}

// Rule actions (FR_ACT_*), named by the route types they correspond to.
const ruleActions: Readonly<Record<number, string>> = {
  1: 'unicast',
  2: 'goto',
  3: 'nop',
  6: 'blackhole',
  7: 'unreachable',
  8: 'prohibit',
}

const routeTables: Readonly<Record<number, string>> = { 0: 'unspec', 253: 'default', 254: 'main', 255: 'local' }

const one = (names: Readonly<Record<number, string>>) => (value: number) => names[value] ?? String(value)
const many = (names: Readonly<Record<number, string>>) => (bits: number) =>
  Object.entries(names)
    .filter(([bit]) => (bits & Number(bit)) !== 0)
    .map(([, name]) => name)
    .join(',')
const back = (names: Readonly<Record<number, string>>) => {
  const numbers = new Map(Object.entries(names).map(([number, name]) => [name, Number(number)]))
  return (name: string) => numbers.get(name) ?? Number(name)
}
const together = (names: Readonly<Record<number, string>>) => {
  const number = back(names)
  return (text: string) => text.split(',').reduce((bits, name) => bits | (name === '' ? 0 : number(name)), 0)
}

/** AF_INET and AF_INET6. */
export const familyName = one(families)
export const familyNumber = back(families)
/** RT_SCOPE_*. */
export const scopeName = one(scopes)
export const scopeNumber = back(scopes)
/** IFA_F_*, joined with commas. */
export const addressFlagNames = many(addressFlags)
export const addressFlagNumber = together(addressFlags)
/** IFF_*, joined with commas. */
export const linkFlagNames = many(linkFlags)
export const linkFlagNumber = together(linkFlags)
/** ARPHRD_*. */
export const linkTypeName = one(linkTypes)
export const linkTypeNumber = back(linkTypes)
/** IF_OPER_*. */
export const operationalStateName = one(operationalStates)
export const operationalStateNumber = back(operationalStates)
/** RTM_F_*, joined with commas. */
export const routeFlagNames = many(routeFlags)
/** RTN_*. */
export const routeTypeName = one(routeTypes)
export const routeTypeNumber = back(routeTypes)
/** RTPROT_*. */
export const routeProtocolName = one(routeProtocols)
export const routeProtocolNumber = back(routeProtocols)
/** RT_TABLE_*; other tables by number. */
export const routeTableName = one(routeTables)
export const routeTableNumber = back(routeTables)
/** FR_ACT_*. */
export const ruleActionName = one(ruleActions)
export const ruleActionNumber = back(ruleActions)
