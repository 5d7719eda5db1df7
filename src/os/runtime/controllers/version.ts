import { type Controller, defineController, exclusive } from '../../../cosi/controller.ts'
import type { Machine } from '../../area.ts'
import { Version } from '../resources/version.ts'

/** The version of the system. */
export const observeVersion = ({ version }: Pick<Machine, 'version'>): Controller =>
  defineController({
    name: 'runtime.VersionController',
    inputs: {},
    outputs: { status: exclusive(Version) },
    reconcile({ status }) {
      status.put('version', { name: version.name, version: version.tag })
    },
  })
