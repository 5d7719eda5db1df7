/** The kernel's boot id (random(4)), which changes with every start. */
export const bootIdPath = '/proc/sys/kernel/random/boot_id'
