import { type Controller, defineController, exclusive } from '../../../cosi/controller.ts'
import type { Kernel } from '../../kernel.ts'
import { familyName, routeTableName } from '../kernel-names.ts'
import { RoutingRuleStatus } from '../resources/routing-rule-status.ts'

/** What rules do, by the numbers of linux/fib_rules.h. */
const actions: Record<number, string> = { 1: 'unicast', 2: 'goto', 3: 'nop', 6: 'blackhole', 7: 'unreachable', 8: 'prohibit' }

/** The routing rules the kernel has, those of IPv4 and IPv6. */
export const observeRoutingRules = ({ net }: { net: Pick<Kernel['net'], 'openNetwork' | 'watchNetwork'> }): Controller =>
  defineController({
    name: 'network.RoutingRuleStatusController',
    inputs: {},
    outputs: { status: exclusive(RoutingRuleStatus) },
    start({ wake, signal }) {
      void (async () => {
        for await (const _ of net.watchNetwork(['rules'], { signal })) wake()
      })()
    },
    reconcile({ status }) {
      using network = net.openNetwork()
      const taken = new Set<string>()
      for (const rule of network.rules()) {
        const family = familyName(rule.family)
        const place = `${family}/${String(rule.priority).padStart(5, '0')}`
        let id = place
        for (let n = 2; taken.has(id); n++) id = `${place}/${n}` // rules may share a priority
        taken.add(id)
        status.put(id, {
          family,
          src: rule.source ?? '',
          dst: rule.destination ?? '',
          table: routeTableName(rule.table),
          priority: rule.priority,
          action: actions[rule.action] ?? String(rule.action),
          ...(rule.inputLink ? { iifName: rule.inputLink } : {}),
          ...(rule.outputLink ? { oifName: rule.outputLink } : {}),
          ...(rule.mark ? { fwMark: rule.mark, fwMask: rule.mask ?? 0xffffffff } : {}),
        })
      }
    },
  })
