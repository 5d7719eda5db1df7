import { type Controller, defineController, exclusive, shared, strong, weak } from '../../../../cosi/controller.ts'
import { merge, strongest } from '../../../../cosi/merge.ts'
import type { SpecOf } from '../../../../cosi/resource.ts'
import type { Rule } from '../../../../linux/net/rtnetlink.ts'
import { familyOf } from '../../../../wire/prefix.ts'
import { declared, findAll } from '../../../config/public.ts'
import { MachineConfig } from '../../../config/resources/machine-config.ts'
import type { Kernel } from '../../../kernel.ts'
import { RoutingRuleConfig } from '../../documents/routing.ts'
import { onChange } from '../../kernel-events.ts'
import { familyName, familyNumber, routeTableName, routeTableNumber, ruleActionName, ruleActionNumber } from '../../kernel-names.ts'
import { canonicalDestination } from '../../link/canonical.ts'
import { RoutingRuleSpec, RoutingRuleStatus } from '../../resources/routing-rule.ts'

type Spec = SpecOf<typeof RoutingRuleSpec>

const idOf = ({ family, priority }: Spec) => `${family}/${String(priority).padStart(5, '0')}`

/** Declares the configured routing rules. A rule without addresses applies to both families. */
export const configRoutingRules: Controller = defineController({
  name: 'network.RoutingRuleConfigController',
  effects: 'none',
  inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }) },
  outputs: { spec: shared(RoutingRuleSpec, 'network-config') },
  reconcile({ config, spec }) {
    for (const document of findAll(declared(config.get('v1alpha1')), RoutingRuleConfig)) {
      const { name, src = '', dst = '', table, action = 'unicast', iifName, oifName, fwMark, fwMask } = document
      const spoken = `${src}${dst}`
      const families = spoken === '' ? ['inet4', 'inet6'] : [familyOf(spoken)]
      for (const family of families) {
        const rule: Spec = {
          family,
          src: src && canonicalDestination(src),
          dst: dst && canonicalDestination(dst),
          table: table ?? 'unspec',
          priority: Number(name),
          action: action === 'unspec' ? 'unicast' : action,
          ...(iifName && { iifName }),
          ...(oifName && { oifName }),
          ...(fwMark && { fwMark, fwMask: fwMask || 0xffffffff }),
          layer: 'configuration',
        }
        spec.put(`configuration/${idOf(rule)}`, rule)
      }
    }
  },
})

/** Merges the layers into one spec per family and priority. */
export const mergeRoutingRules: Controller = merge('RoutingRuleMergeControllers.net.talos.dev', RoutingRuleSpec, strongest)

const ours = 4 // RTPROT_STATIC

/** Adds desired routing rules and removes those this controller added earlier. Rules of others are left alone. */
export const applyRoutingRules = ({ net }: { net: Pick<Kernel['net'], 'openNetwork' | 'watchNetwork'> }): Controller => {
  const added = new Map<string, Partial<Rule>>()
  return defineController({
    name: 'network.RoutingRuleSpecController',
    inputs: { specs: strong(RoutingRuleSpec) },
    outputs: {},
    start: onChange(net, ['rules']),
    reconcile({ specs, log }) {
      using network = net.openNetwork()
      const desired = new Map(specs.list().map(({ metadata, spec }) => [metadata.id, ruleOf(spec)]))
      const present = network.rules()
      const has = (rule: Partial<Rule>) => present.some((other) => same(rule, other))
      for (const [id, rule] of added) {
        const next = desired.get(id)
        if (next && same(rule, next)) continue
        log.info('removing routing rule', { priority: rule.priority, family: familyName(rule.family ?? 0) })
        if (has(rule)) network.removeRule(rule)
        added.delete(id)
      }
      for (const [id, rule] of desired) {
        if (has(rule)) continue
        log.info('adding routing rule', { priority: rule.priority, family: familyName(rule.family ?? 0) })
        network.addRule(rule)
        added.set(id, rule)
      }
    },
  })
}

function ruleOf({ family, src, dst, table, priority, action, iifName, oifName, fwMark, fwMask }: Spec): Partial<Rule> {
  return {
    family: familyNumber(family),
    ...(src && { source: src }),
    ...(dst && { destination: dst }),
    table: action === 'unicast' ? routeTableNumber(table) : 0,
    priority,
    action: ruleActionNumber(action),
    protocol: ours,
    ...(iifName && { inputLink: iifName }),
    ...(oifName && { outputLink: oifName }),
    ...(fwMark && { mark: fwMark, mask: fwMask ?? 0xffffffff }),
  }
}

const compared = ['family', 'source', 'destination', 'table', 'priority', 'action', 'inputLink', 'outputLink', 'mark', 'mask'] as const
const same = (a: Partial<Rule>, b: Partial<Rule>): boolean => compared.every((key) => (a[key] || undefined) === (b[key] || undefined))

/** Publishes the kernel's IPv4 and IPv6 routing rules. */
export const observeRoutingRules = ({ net }: { net: Pick<Kernel['net'], 'openNetwork' | 'watchNetwork'> }): Controller =>
  defineController({
    name: 'network.RoutingRuleStatusController',
    inputs: {},
    outputs: { status: exclusive(RoutingRuleStatus) },
    start: onChange(net, ['rules']),
    reconcile({ status }) {
      using network = net.openNetwork()
      const taken = new Set<string>()
      for (const rule of network.rules()) {
        const family = familyName(rule.family)
        const place = `${family}/${String(rule.priority).padStart(5, '0')}`
        let id = place
        for (let n = 2; taken.has(id); n++) id = `${place}/${n}` // several rules may have the same priority
        taken.add(id)
        status.put(id, {
          family,
          src: rule.source ?? '',
          dst: rule.destination ?? '',
          table: routeTableName(rule.table),
          priority: rule.priority,
          action: ruleActionName(rule.action),
          ...(rule.inputLink && { iifName: rule.inputLink }),
          ...(rule.outputLink && { oifName: rule.outputLink }),
          ...(rule.mark && { fwMark: rule.mark, fwMask: rule.mask ?? 0xffffffff }),
        })
      }
    },
  })
