import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { componentSettings } from './component-settings.ts'

/** How kube-controller-manager should run. */
export const ControllerManagerConfig = defineResource({
  type: 'ControllerManagerConfigs.kubernetes.talos.dev',
  namespace: 'controlplane',
  displayType: 'ControllerManagerConfig',
  spec: v.object({
    enabled: v.boolean(),
    image: v.string(),
    cloudProvider: v.string(),
    podCIDRs: v.optional(v.array(v.string()), []),
    serviceCIDRs: v.optional(v.array(v.string()), []),
    ...componentSettings,
  }),
})
