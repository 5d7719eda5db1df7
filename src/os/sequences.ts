/** The name of a sequence of the machine, as events show it. */
export type SequenceName =
  | 'noop'
  | 'boot'
  | 'initialize'
  | 'install'
  | 'shutdown'
  | 'upgrade'
  | 'stageUpgrade'
  | 'maintenanceUpgrade'
  | 'reset'
  | 'reboot'
  | 'emergencyVolumeCleanup'
