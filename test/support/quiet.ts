// Tests break hundreds of stores; those that are about the warning of one that is away switch it on again.
process.env['LIMITKEEPER_NO_WARNINGS'] ??= 'LIMITKEEPER_STORE_AWAY';
