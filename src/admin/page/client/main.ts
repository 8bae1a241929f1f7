document.title = 'Limits';
